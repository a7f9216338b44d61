/* diff.c - `gimbal plan diff A B`: how two saved plans differ, and what that was predicted to be
 * worth. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/base/units.h"
#include "common/plan/diff.h"

/* Rows of a table, or objects. */
struct sink {
    struct table *table;
    json_t *items;
};

static void add_cb(const char *what, const char *first, const char *second, void *context)
{
    struct sink *sink = context;
    table_add(sink->table, "%s", what);
    table_add(sink->table, "%s", first);
    table_add(sink->table, "%s", second);
    json_array_append_new(
        sink->items, json_pack("{s:s, s:s, s:s}", "what", what, "first", first, "second", second));
}

static void add_predictions(struct sink *sink, const struct plan *first, const struct plan *second)
{
    char texts[2][32];
    add_cb("predicted step",
           units_print_seconds(texts[0], sizeof texts[0], first->predicted.step_time_s),
           units_print_seconds(texts[1], sizeof texts[1], second->predicted.step_time_s), sink);
    add_cb("predicted memory",
           units_print_bytes(texts[0], sizeof texts[0], (double)first->predicted.memory_bytes_max),
           units_print_bytes(texts[1], sizeof texts[1], (double)second->predicted.memory_bytes_max),
           sink);
}

static int diff(const struct invocation *invocation, const struct plan *first,
                const struct plan *second, struct error *err)
{
    static const struct column columns[] = {{"WHAT"}, {"FIRST"}, {"SECOND"}};
    const struct common *common = &invocation->common;
    struct sink sink = {table_create(columns, 3), json_array()};
    int count = plan_diff(first, second, add_cb, &sink, err);
    if (count > 0)
        add_predictions(&sink, first, second);
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

static int run(const struct invocation *invocation, struct error *err)
{
    struct plan *plans[2] = {NULL, NULL};
    int rc = 0, code;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = plan_load(invocation->arguments[i], &plans[i], err);
    code = rc < 0 ? exit_of_errno(rc) : diff(invocation, plans[0], plans[1], err);
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
    .run = run,
};
