/* referees.c - prints a table with a row per plan, or an object. */
#include "coordinator/cli/commands/plan/referees.h"
#include "coordinator/cli/exit.h"

#include "common/base/units.h"
#include "common/profile/galvatron.h"
#include "coordinator/planner/galvatron/compare.h"

#include <string.h>

/* The searches that are compared if --search names none. */
static const char *const compared[] = {"exact", "bmw", "uniform", NULL};

static const struct column columns[] = {
    {.name = "FROM"},
    {.name = "DIVISION"},
    {.name = "FORMULA", .right = true},
    {.name = "SIMULATED", .right = true},
    {.name = "MEMORY", .right = true},
    {.name = "FITS"},
    {.name = "OUR STEP", .right = true},
    {.name = "OUR MEMORY", .right = true},
    {.name = "NOTE"},
};

static void add_row(struct table *table, const struct galvatron_row *row)
{
    char division[96] = "", seconds[2][32] = {"", ""}, bytes[32] = "", own[2][32] = {"", ""};
    if (row->judged) {
        units_print_seconds(seconds[0], sizeof seconds[0], row->formula_s);
        units_print_seconds(seconds[1], sizeof seconds[1], row->simulated_s);
        units_print_bytes(bytes, sizeof bytes, row->bytes);
    }
    if (row->plan) {
        plan_print(division, sizeof division, row->plan);
        units_print_seconds(own[0], sizeof own[0], row->plan->predicted.step_time_s);
        units_print_bytes(own[1], sizeof own[1], (double)row->plan->predicted.memory_bytes_max);
    }
    table_add(table, "%s", row->from);
    table_add(table, "%s", division);
    table_add(table, "%s", seconds[0]);
    table_add(table, "%s", seconds[1]);
    table_add(table, "%s", bytes);
    table_add(table, "%s", !row->judged ? "" : row->fits ? "yes" : "no");
    table_add(table, "%s", own[0]);
    table_add(table, "%s", own[1]);
    table_add(table, "%s", row->words.text);
}

static void print_table(const struct common *common, const struct galvatron_rows *rows)
{
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    char memory[32];
    if (!common->no_headers)
        printf(
            "FORMULA, MEMORY and FITS are Galvatron's, which uses %s of a device; SIMULATED runs "
            "its stages as 1F1B\n",
            units_print_bytes(memory, sizeof memory, rows->memory_bytes));
    for (size_t i = 0; i < rows->count; i++)
        add_row(table, &rows->items[i]);
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static json_t *encode_row(const struct galvatron_row *row)
{
    json_t *object = json_pack("{s:s}", "from", row->from);
    char division[96];
    if (row->plan)
        json_object_update_new(
            object,
            json_pack("{s:s, s:s, s:i, s:f, s:I}", "plan", row->plan->id, "division",
                      plan_print(division, sizeof division, row->plan), "devices",
                      plan_ranks(row->plan), "step_time_s", row->plan->predicted.step_time_s,
                      "memory_bytes_max", (json_int_t)row->plan->predicted.memory_bytes_max));
    if (row->judged)
        json_object_set_new(object, "galvatron",
                            json_pack("{s:f, s:f, s:I, s:b}", "formula_s", row->formula_s,
                                      "simulated_s", row->simulated_s, "memory_bytes",
                                      (json_int_t)row->bytes, "fits", row->fits));
    if (row->words.text[0])
        json_object_set_new(object, "note", json_string(row->words.text));
    return object;
}

static void print_json(const struct common *common, const struct galvatron_rows *rows)
{
    json_t *items = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append_new(items, encode_row(&rows->items[i]));
    output_print_list((enum output)common->output, "PlanReferees", "plans", items, stdout);
}

static int check(const struct common *common, const struct ask_values *ask, const char *profile_dir,
                 struct error *err)
{
    if (!profile_dir)
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST " needs --profile-dir DIR, the folder of that "
                         "project's computation_profiling_*.json and memory_profiling_*.json");
    if (!ask->cluster || ask->local || common->address)
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST " needs --cluster FILE, the devices and their "
                         "memory, and neither --local nor --address");
    if (common->output == OUTPUT_SVG || ask->dump)
        return error_set(err, EXIT_USAGE, "--%s does not go with --cost " GALVATRON_COST,
                         ask->dump ? "dump-costs" : "output svg");
    return EXIT_DONE;
}

static int compare(const struct common *common, const struct ask_values *ask,
                   const struct offline *offline, const struct galvatron_profile *profile,
                   struct error *err)
{
    const char *const one[] = {ask->search, NULL};
    struct galvatron_rows rows;
    struct plan *given = NULL;
    int rc = ask->plan ? plan_load(ask->plan, &given, err) : 0;
    if (rc < 0)
        return exit_of_errno(rc);
    rc = galvatron_compare(&offline->request, profile, ask->search ? one : compared, given, &rows,
                           err);
    if (rc == 0 && common->output >= OUTPUT_JSON)
        print_json(common, &rows);
    else if (rc == 0)
        print_table(common, &rows);
    galvatron_rows_finish(&rows);
    return exit_of_errno(rc);
}

int referees_run(const struct common *common, const struct ask_values *ask, const char *profile_dir,
                 const char *hardware_dir, struct error *err)
{
    struct ask_values plain = *ask;
    struct offline_request request;
    struct offline offline = {0};
    struct galvatron_profile profile;
    int code = check(common, ask, profile_dir, err);
    plain.cost = NULL; /* what Galvatron did not measure comes from the cluster file */
    if (code == EXIT_DONE)
        code = ask_request(&plain, &request, err);
    if (code == EXIT_DONE)
        code = offline_open(&request, &offline, err);
    if (code == EXIT_DONE)
        code = exit_of_errno(galvatron_load(profile_dir, hardware_dir ? hardware_dir : profile_dir,
                                            sizes_get(&offline.graph->sizes, 's'), &profile, err));
    if (code == EXIT_DONE)
        code = compare(common, ask, &offline, &profile, err);
    offline_finish(&offline);
    return code;
}
