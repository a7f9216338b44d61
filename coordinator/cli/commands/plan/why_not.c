/* why_not.c - `gimbal plan why-not tp=8`: what forbids a plan with these choices, or what it would
 * cost beside the one that was chosen. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/plan/compare.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/search.h"

#include "coordinator/planner/wish.h"

#include <errno.h>

static const struct flag why_not_flags[] = {ASK_FLAGS, {.name = NULL}};

/* No such plan: the reason is the answer. */
static int answer_none(const struct common *common, int rc, const struct error *words)
{
    if (common->output >= OUTPUT_JSON)
        output_print_object((enum output)common->output,
                            resource_object("PlanWhyNot", json_pack("{s:b, s:s}", "fits", 0,
                                                                    "reason", words->text)),
                            stdout);
    else
        printf("%s: %s\n", rc == -ENOSPC ? "it does not fit" : "it cannot be divided this way",
               words->text);
    return EXIT_DONE;
}

static int answer(const struct invocation *invocation, const struct offline *offline,
                  struct error *err)
{
    struct job_config job = *offline->job; /* no text in it is changed */
    struct planner_request request = offline->request;
    struct planner_result result = {0};
    struct error words;
    for (int i = 0; i < invocation->argument_count; i++)
        if (wish_pin(&job.plan, invocation->arguments[i], err) < 0)
            return EXIT_USAGE;
    request.job = &job;
    int rc = planner_run(&request, &result, &words), code;
    if (rc == -ENOSPC || rc == -EINVAL) {
        code = answer_none(&invocation->common, rc, &words);
    } else {
        const struct compared sides[] = {{"CHOSEN", &offline->request, offline->best},
                                         {"ASKED FOR", &request, result.best}};
        code = compare_print(&invocation->common, "PlanWhyNot", sides, err);
    }
    planner_result_finish(&result);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    struct offline offline;
    int code = ask_run(&invocation->common, invocation->values, &offline, err);
    if (code == EXIT_DONE)
        code = answer(invocation, &offline, err);
    offline_finish(&offline);
    return code;
}

const struct command command_plan_why_not = {
    .name = "plan why-not",
    .summary = "Say why there is no plan with tp=8, zero=3, ..., or what it would cost",
    .arguments = "dp=N|tp=N|pp=N|micro_batches=N|zero=N ...",
    .arguments_min = 1,
    .arguments_max = 5,
    .flags = why_not_flags,
    .values_size = sizeof(struct ask_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
