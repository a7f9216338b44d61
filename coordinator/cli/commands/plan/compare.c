/* compare.c - two plans of one model side by side: `gimbal plan diff A B`, two that are saved, and
 * what their difference was predicted to be worth; `gimbal plan what-if`, the plan as things are
 * and the plan with more devices, other links or more memory; and `gimbal plan why-not tp=8`, what
 * forbids a plan with these choices, or what it would cost beside the one that was chosen. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/search.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/planner/costs/plan_diff.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/explain.h"
#include "coordinator/planner/wish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 80

/* Rows of a table, or objects. */
struct differences {
    struct table *table;
    json_t *items;
};

static void differences_add_cb(const char *what, const char *first, const char *second,
                               void *context)
{
    struct differences *sink = context;
    table_add(sink->table, "%s", what);
    table_add(sink->table, "%s", first);
    table_add(sink->table, "%s", second);
    json_array_append_new(
        sink->items, json_pack("{s:s, s:s, s:s}", "what", what, "first", first, "second", second));
}

static void diff_add_predictions(struct differences *sink, const struct plan *first,
                                 const struct plan *second)
{
    char texts[2][32];
    differences_add_cb(
        "predicted step",
        units_print_seconds(texts[0], sizeof texts[0], first->predicted.step_time_s),
        units_print_seconds(texts[1], sizeof texts[1], second->predicted.step_time_s), sink);
    differences_add_cb(
        "predicted memory",
        units_print_bytes(texts[0], sizeof texts[0], (double)first->predicted.memory_bytes_max),
        units_print_bytes(texts[1], sizeof texts[1], (double)second->predicted.memory_bytes_max),
        sink);
}

static int diff_print(const struct invocation *invocation, const struct plan *first,
                      const struct plan *second, struct error *err)
{
    static const struct column columns[] = {{"WHAT"}, {"FIRST"}, {"SECOND"}};
    const struct common *common = &invocation->common;
    struct differences sink = {table_create(columns, 3), json_array()};
    int count = plan_diff(first, second, differences_add_cb, &sink, err);
    if (count > 0)
        diff_add_predictions(&sink, first, second);
    if (count >= 0 && common->output >= OUTPUT_JSON) {
        output_print_list((enum output)common->output, "PlanDiff", "differences",
                          json_incref(sink.items), stdout);
    } else if (count > 0) {
        table_print(sink.table, false, !common->no_headers, stdout);
    } else if (count == 0 && !common->quiet) {
        fprintf(stderr, "%s and %s are the same plan\n", first->id, second->id);
    }
    json_decref(sink.items);
    table_destroy(sink.table);
    return count < 0 ? EXIT_INPUT : EXIT_DONE;
}

static int diff_run(const struct invocation *invocation, struct error *err)
{
    struct plan *plans[2] = {NULL, NULL};
    int rc = 0, code;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = plan_load(invocation->arguments[i], &plans[i], err);
    code = rc < 0 ? exit_of_errno(rc) : diff_print(invocation, plans[0], plans[1], err);
    for (int i = 0; i < 2; i++)
        plan_destroy(plans[i]);
    return code;
}

const struct command command_plan_diff = {
    .name = "plan diff",
    .summary = "Show how two saved plans differ",
    .arguments = "FILE FILE",
    .arguments_min = 2,
    .arguments_max = 2,
    .takes = TAKES_OUTPUT,
    .run = diff_run,
};

struct compared {
    const char *name; /* heads its column, as in "now", "then" */
    const struct planner_request *request;
    const struct plan *plan;
};

static double compare_total(const struct explain_seconds *seconds)
{
    return seconds->compute + seconds->host + seconds->network;
}

/* Where the time goes in the stage that takes longest. */
static int compare_explain_longest(const struct compared *side, struct explain_seconds *out,
                                   struct error *err)
{
    struct shared_cores used;
    struct explanation explanation = {0};
    int rc = shared_cores_order(side->request, side->plan, &used, err);
    struct planner_request request = shared_cores_ask(side->request, &used);
    if (rc == 0)
        rc = explain_plan(&request, side->plan, &explanation, err);
    *out = (struct explain_seconds){0};
    for (int stage = 0; stage < explanation.stage_count && rc == 0; stage++) {
        struct explain_seconds sum = explanation_stage(&explanation, side->plan, stage);
        if (compare_total(&sum) > compare_total(out))
            *out = sum;
    }
    explanation_finish(&explanation);
    shared_cores_finish(&used);
    return rc;
}

static void compare_add_seconds(struct table *table, const char *what, double first, double second)
{
    char text[32];
    table_add(table, "%s", what);
    table_add(table, "%s", units_print_seconds(text, sizeof text, first));
    table_add(table, "%s", units_print_seconds(text, sizeof text, second));
}

static void compare_add_predictions(struct table *table, const struct compared sides[2],
                                    const struct explain_seconds seconds[2])
{
    const struct plan *first = sides[0].plan, *second = sides[1].plan;
    char text[32];
    table_add(table, "plan");
    table_add(table, "%s", first->id);
    table_add(table, "%s", second->id);
    compare_add_seconds(table, "step", first->predicted.step_time_s, second->predicted.step_time_s);
    compare_add_seconds(table, "copies of state, a step", first->predicted.copies_time_s,
                        second->predicted.copies_time_s);
    table_add(table, "memory of a device");
    table_add(table, "%s",
              units_print_bytes(text, sizeof text, (double)first->predicted.memory_bytes_max));
    table_add(table, "%s",
              units_print_bytes(text, sizeof text, (double)second->predicted.memory_bytes_max));
    compare_add_seconds(table, "compute, longest stage", seconds[0].compute, seconds[1].compute);
    compare_add_seconds(table, "host links", seconds[0].host, seconds[1].host);
    compare_add_seconds(table, "network", seconds[0].network, seconds[1].network);
}

static json_t *compare_encode_side(const struct compared *side,
                                   const struct explain_seconds *seconds)
{
    return json_pack("{s:s, s:f, s:f, s:I, s:i, s:f, s:f, s:f}", "plan", side->plan->id,
                     "step_time_s", side->plan->predicted.step_time_s, "copies_time_s",
                     side->plan->predicted.copies_time_s, "memory_bytes_max",
                     (json_int_t)side->plan->predicted.memory_bytes_max, "devices",
                     plan_ranks(side->plan), "compute_s", seconds->compute, "host_s", seconds->host,
                     "network_s", seconds->network);
}

/* Print the predictions, where the time of a step goes (for the slowest stage, one micro-batch
 * after the other), and the differences between the plans. An enum exit_code. */
static int compare_print(const struct common *common, const char *kind,
                         const struct compared sides[2], struct error *err)
{
    const struct column columns[] = {{"WHAT"}, {sides[0].name}, {sides[1].name}};
    struct explain_seconds seconds[2];
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = compare_explain_longest(&sides[i], &seconds[i], err);
    if (rc < 0)
        return exit_of_errno(rc);
    struct differences rows = {table_create(columns, 3), json_array()};
    compare_add_predictions(rows.table, sides, seconds);
    rc = plan_diff(sides[0].plan, sides[1].plan, differences_add_cb, &rows, err);
    if (rc >= 0 && common->output >= OUTPUT_JSON)
        output_print_object(
            (enum output)common->output,
            resource_object(kind, json_pack("{s:o, s:o, s:O}", "first",
                                            compare_encode_side(&sides[0], &seconds[0]), "second",
                                            compare_encode_side(&sides[1], &seconds[1]),
                                            "differences", rows.items)),
            stdout);
    else if (rc >= 0)
        table_print(rows.table, false, !common->no_headers, stdout);
    json_decref(rows.items);
    table_destroy(rows.table);
    return rc < 0 ? exit_of_errno(rc) : EXIT_DONE;
}

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

static int what_if_change_link(struct wished *wished, const char *text, struct error *err)
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

static int what_if_change(const struct what_if_values *values, struct wished *wished,
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
    return values->link ? what_if_change_link(wished, values->link, err) : EXIT_DONE;
}

static int what_if_answer(const struct invocation *invocation, const struct offline *offline,
                          struct error *err)
{
    struct job_config job = *offline->job; /* no text in it is changed */
    struct planner_request request = offline->request;
    struct planner_result result = {0};
    struct wished wished;
    struct error words;
    wished_init(&wished, request.devices, request.device_count);
    int code = what_if_change(invocation->values, &wished, &job, err);
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
    candidates_finish(&result);
    wished_finish(&wished);
    return code;
}

static int what_if_run(const struct invocation *invocation, struct error *err)
{
    struct ask_values ask = ((const struct what_if_values *)invocation->values)->ask;
    struct offline offline;
    int code = jobfile_path(invocation, &ask.file, err);
    if (code != EXIT_DONE)
        return code;
    code = ask_run(&invocation->common, &ask, &offline, err);
    if (code == EXIT_DONE)
        code = what_if_answer(invocation, &offline, err);
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
    .run = what_if_run,
};

static const struct flag why_not_flags[] = {ASK_FLAGS, {.name = NULL}};

/* No such plan: the reason is the answer. */
static int why_not_answer_none(const struct common *common, int rc, const struct error *words)
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

static int why_not_answer(const struct invocation *invocation, const struct offline *offline,
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
        code = why_not_answer_none(&invocation->common, rc, &words);
    } else {
        const struct compared sides[] = {{"CHOSEN", &offline->request, offline->best},
                                         {"ASKED FOR", &request, result.best}};
        code = compare_print(&invocation->common, "PlanWhyNot", sides, err);
    }
    candidates_finish(&result);
    return code;
}

static int why_not_run(const struct invocation *invocation, struct error *err)
{
    struct offline offline;
    int code = ask_run(&invocation->common, invocation->values, &offline, err);
    if (code == EXIT_DONE)
        code = why_not_answer(invocation, &offline, err);
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
    .run = why_not_run,
};
