/* compare.c - prints two plans side by side, as a table of three columns or as an object. */
#include "coordinator/cli/commands/plan/compare.h"
#include "coordinator/cli/exit.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/plan/diff.h"
#include "coordinator/planner/report/explain.h"
#include "coordinator/planner/shared_cores.h"

#include <stdlib.h>

struct rows {
    struct table *table;
    json_t *differences;
};

static void add_cb(const char *what, const char *first, const char *second, void *context)
{
    struct rows *rows = context;
    table_add(rows->table, "%s", what);
    table_add(rows->table, "%s", first);
    table_add(rows->table, "%s", second);
    json_array_append_new(rows->differences, json_pack("{s:s, s:s, s:s}", "what", what, "first",
                                                       first, "second", second));
}

static double total(const struct explain_seconds *seconds)
{
    return seconds->compute + seconds->host + seconds->network;
}

/* Where the time goes in the stage that takes longest. */
static int explain_longest(const struct compared *side, struct explain_seconds *out,
                           struct error *err)
{
    struct planner_request request = *side->request;
    struct shared_cores used;
    struct explanation explanation = {0};
    int rc = planner_order(&request, side->plan, &used, err);
    request.devices = used.devices;
    request.device_count = used.count;
    if (rc == 0)
        rc = explain_plan(&request, side->plan, &explanation, err);
    *out = (struct explain_seconds){0};
    for (int stage = 0; stage < explanation.stage_count && rc == 0; stage++) {
        struct explain_seconds sum = explanation_stage(&explanation, side->plan, stage);
        if (total(&sum) > total(out))
            *out = sum;
    }
    explanation_finish(&explanation);
    shared_cores_finish(&used);
    return rc;
}

static void add_seconds(struct table *table, const char *what, double first, double second)
{
    char text[32];
    table_add(table, "%s", what);
    table_add(table, "%s", units_print_seconds(text, sizeof text, first));
    table_add(table, "%s", units_print_seconds(text, sizeof text, second));
}

static void add_predictions(struct table *table, const struct compared sides[2],
                            const struct explain_seconds seconds[2])
{
    const struct plan *first = sides[0].plan, *second = sides[1].plan;
    char text[32];
    table_add(table, "plan");
    table_add(table, "%s", first->id);
    table_add(table, "%s", second->id);
    add_seconds(table, "step", first->predicted.step_time_s, second->predicted.step_time_s);
    add_seconds(table, "copies of state, a step", first->predicted.copies_time_s,
                second->predicted.copies_time_s);
    table_add(table, "memory of a device");
    table_add(table, "%s",
              units_print_bytes(text, sizeof text, (double)first->predicted.memory_bytes_max));
    table_add(table, "%s",
              units_print_bytes(text, sizeof text, (double)second->predicted.memory_bytes_max));
    add_seconds(table, "compute, longest stage", seconds[0].compute, seconds[1].compute);
    add_seconds(table, "host links", seconds[0].host, seconds[1].host);
    add_seconds(table, "network", seconds[0].network, seconds[1].network);
}

static json_t *encode_side(const struct compared *side, const struct explain_seconds *seconds)
{
    return json_pack("{s:s, s:f, s:f, s:I, s:i, s:f, s:f, s:f}", "plan", side->plan->id,
                     "step_time_s", side->plan->predicted.step_time_s, "copies_time_s",
                     side->plan->predicted.copies_time_s, "memory_bytes_max",
                     (json_int_t)side->plan->predicted.memory_bytes_max, "devices",
                     plan_ranks(side->plan), "compute_s", seconds->compute, "host_s", seconds->host,
                     "network_s", seconds->network);
}

int compare_print(const struct common *common, const char *kind, const struct compared sides[2],
                  struct error *err)
{
    const struct column columns[] = {{"WHAT"}, {sides[0].name}, {sides[1].name}};
    struct explain_seconds seconds[2];
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = explain_longest(&sides[i], &seconds[i], err);
    if (rc < 0)
        return exit_of_errno(rc);
    struct rows rows = {table_create(columns, 3), json_array()};
    add_predictions(rows.table, sides, seconds);
    rc = plan_diff(sides[0].plan, sides[1].plan, add_cb, &rows, err);
    if (rc >= 0 && common->output >= OUTPUT_JSON)
        output_print_object(
            (enum output)common->output,
            resource_object(kind, json_pack("{s:o, s:o, s:O}", "first",
                                            encode_side(&sides[0], &seconds[0]), "second",
                                            encode_side(&sides[1], &seconds[1]), "differences",
                                            rows.differences)),
            stdout);
    else if (rc >= 0)
        table_print(rows.table, false, !common->no_headers, stdout);
    json_decref(rows.differences);
    table_destroy(rows.table);
    return rc < 0 ? exit_of_errno(rc) : EXIT_DONE;
}
