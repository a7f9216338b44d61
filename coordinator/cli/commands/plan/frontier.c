/* frontier.c - `gimbal plan frontier`: the fastest plan, and what can be had for less memory or
 * fewer devices: every plan that no other beats in all three. */
#include "coordinator/cli/drawings/frontier.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/search.h"

#include "common/base/units.h"
#include "coordinator/planner/tradeoff.h"

#include <stdlib.h>

static const struct flag frontier_flags[] = {ASK_FLAGS, {.name = NULL}};

static const struct column columns[] = {
    {.name = "PLAN"},
    {.name = "DIVISION"},
    {.name = "DEVICES", .right = true},
    {.name = "STEP", .right = true},
    {.name = "TOK/S", .right = true},
    {.name = "MEMORY", .right = true},
    {.name = "STEP VS FASTEST", .right = true},
};

static void print_table(const struct common *common, const struct plan *const *plans, size_t count,
                        const struct plan *best)
{
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        const struct plan *plan = plans[i];
        char text[96];
        table_add(table, "%s", plan->id);
        table_add(table, "%s", plan_print(text, sizeof text, plan));
        table_add(table, "%d", plan_ranks(plan));
        table_add(table, "%s", units_print_seconds(text, sizeof text, plan->predicted.step_time_s));
        table_add(table, "%.0f", plan->predicted.tokens_per_s);
        table_add(table, "%s",
                  units_print_bytes(text, sizeof text, (double)plan->predicted.memory_bytes_max));
        table_add(table, "%.2f", plan->predicted.step_time_s / best->predicted.step_time_s);
    }
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

/* Whole plans, so that any of them can be saved and submitted. */
static void print_json(const struct common *common, const struct plan *const *plans, size_t count,
                       const struct graph *graph)
{
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++) {
        char *text = plan_encode(plans[i], graph);
        json_array_append_new(items, json_loads(text, 0, NULL));
        free(text);
    }
    output_print_list((enum output)common->output, "PlanFrontier", "plans", items, stdout);
}

static int show(const struct common *common, const struct offline *offline, struct error *err)
{
    size_t count;
    const struct planner_result *result = &offline->result;
    if (result->best->predicted.alternative_count == 0)
        return error_set(
            err, EXIT_USAGE,
            "the search '%s' finds a single plan, not a frontier: leave out --search and "
            "plan.search, or write exact",
            result->best->predicted.search);
    const struct plan **plans = tradeoff_find(result, &count);
    if (common->output == OUTPUT_SVG)
        frontier_draw(result, stdout);
    else if (common->output >= OUTPUT_JSON)
        print_json(common, plans, count, offline->graph);
    else
        print_table(common, plans, count, result->best);
    free(plans);
    return EXIT_DONE;
}

static int run(const struct invocation *invocation, struct error *err)
{
    struct ask_values ask = *(const struct ask_values *)invocation->values;
    struct offline offline;
    if (ask.plan)
        return error_set(err, EXIT_USAGE,
                         "--plan is a single plan and has no frontier: leave it out");
    int code = jobfile_path(invocation, &ask.file, err);
    if (code != EXIT_DONE)
        return code;
    ask.frontier = true;
    code = ask_run(&invocation->common, &ask, &offline, err);
    if (code == EXIT_DONE)
        code = show(&invocation->common, &offline, err);
    offline_finish(&offline);
    return code;
}

const struct command command_plan_frontier = {
    .name = "plan frontier",
    .summary = "Show the best plans for less memory and fewer devices; -o svg draws them",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = frontier_flags,
    .values_size = sizeof(struct ask_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT | TAKES_DRAWING,
    .run = run,
};
