/* what_if.c - `gimbal plan what-if`: the plan as things are, and the plan with more devices, other
 * links or more memory. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/plan/compare.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/search.h"

#include "coordinator/planner/wish.h"

#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 80

struct what_if_values {
    struct ask_values ask;
    const char *link;
    uint64_t device_memory; /* 0: not given */
    int64_t add;
};

static const struct flag what_if_flags[] = {
    ASK_FLAGS,
    {"add", 0, FLAG_NUMBER, offsetof(struct what_if_values, add), "N",
     "N more devices, like the last one", .least = 1, .greatest = PLAN_RANKS_MAX},
    {"link", 0, FLAG_TEXT, offsetof(struct what_if_values, link), "LINK=Fx",
     "links F times as fast: host=2x, network=2x, or NODE=2x for its network"},
    {"device-memory", 0, FLAG_SIZE, offsetof(struct what_if_values, device_memory), "SIZE",
     "this much memory in each device"},
    {.name = NULL},
};

static int change_link(struct wished *wished, const char *text, struct error *err)
{
    char name[NAME_SIZE], *end;
    size_t length = strcspn(text, "=");
    if (!text[length] || length >= sizeof name)
        return error_set(err, EXIT_USAGE, "--link '%s': write host=2x, network=2x or NODE=2x",
                         text);
    memcpy(name, text, length);
    name[length] = '\0';
    double factor = strtod(text + length + 1, &end);
    if (end == text + length + 1 || strcmp(end, "x") != 0)
        return error_set(err, EXIT_USAGE, "--link '%s': write how many times as fast, %s=2x", text,
                         name);
    return wished_link(wished, name, factor, err) < 0 ? EXIT_USAGE : EXIT_DONE;
}

static int change(const struct what_if_values *values, struct wished *wished,
                  struct job_config *job, struct error *err)
{
    if (!values->add && !values->link && !values->device_memory)
        return error_set(err, EXIT_USAGE, "needs --add, --link or --device-memory");
    if (values->add) {
        if (wished_add(wished, (int)values->add, err) < 0)
            return EXIT_INPUT;
        job->devices.max = job->devices.max ? job->devices.max + values->add : 0;
    }
    if (values->device_memory) {
        wished_memory(wished, values->device_memory);
        job->plan.memory = 0;
    }
    return values->link ? change_link(wished, values->link, err) : EXIT_DONE;
}

static int answer(const struct invocation *invocation, const struct offline *offline,
                  struct error *err)
{
    struct job_config job = *offline->job; /* no text in it is changed */
    struct planner_request request = offline->request;
    struct planner_result result = {0};
    struct wished wished;
    struct error words;
    wished_init(&wished, request.devices, request.device_count);
    int code = change(invocation->values, &wished, &job, err);
    request.job = &job;
    request.devices = wished.devices;
    request.device_count = (int)wished.count;
    if (code == EXIT_DONE && planner_run(&request, &result, &words) < 0) {
        *err = words;
        code = EXIT_NO_PLAN;
    }
    if (code == EXIT_DONE) {
        const struct compared sides[] = {{"NOW", &offline->request, offline->best},
                                         {"THEN", &request, result.best}};
        code = compare_print(&invocation->common, "PlanWhatIf", sides, err);
    }
    planner_result_finish(&result);
    wished_finish(&wished);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    struct ask_values ask = ((const struct what_if_values *)invocation->values)->ask;
    struct offline offline;
    int code = jobfile_path(invocation, &ask.file, err);
    if (code != EXIT_DONE)
        return code;
    code = ask_run(&invocation->common, &ask, &offline, err);
    if (code == EXIT_DONE)
        code = answer(invocation, &offline, err);
    offline_finish(&offline);
    return code;
}

const struct command command_plan_what_if = {
    .name = "plan what-if",
    .summary = "Compare the plan with one for more devices, faster links or more memory",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = what_if_flags,
    .values_size = sizeof(struct what_if_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
