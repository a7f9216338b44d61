/* plan.c - `gimbal plan`: how a job would be divided, by the coordinator, for this machine, or for
 * a cluster that is only described in a file; and `gimbal plan frontier`: the fastest plan, and
 * what can be had for less memory or fewer devices: every plan that no other beats in all three. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/plan/drawings.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/search.h"

#include "common/base/file.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "coordinator/planner/compare.h"
#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/galvatron/profile.h"

#include <stdlib.h>
#include <string.h>

static const struct flag frontier_flags[] = {ASK_FLAGS, {.name = NULL}};

static const struct column frontier_columns[] = {
    {.name = "PLAN"},
    {.name = "DIVISION"},
    {.name = "DEVICES", .right = true},
    {.name = "STEP", .right = true},
    {.name = "TOK/S", .right = true},
    {.name = "MEMORY", .right = true},
    {.name = "STEP VS FASTEST", .right = true},
};

static void frontier_print_table(const struct common *common, const struct plan *const *plans,
                                 size_t count, const struct plan *best)
{
    struct table *table =
        table_create(frontier_columns, sizeof frontier_columns / sizeof *frontier_columns);
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
static void frontier_print_json(const struct common *common, const struct plan *const *plans,
                                size_t count, const struct graph *graph)
{
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++) {
        char *text = plan_encode(plans[i], graph);
        json_array_append_new(items, json_loads(text, 0, NULL));
        free(text);
    }
    output_print_list((enum output)common->output, "PlanFrontier", "plans", items, stdout);
}

static int frontier_show(const struct common *common, const struct offline *offline,
                         struct error *err)
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
        frontier_print_json(common, plans, count, offline->graph);
    else
        frontier_print_table(common, plans, count, result->best);
    free(plans);
    return EXIT_DONE;
}

static int frontier_run(const struct invocation *invocation, struct error *err)
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
        code = frontier_show(&invocation->common, &offline, err);
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
    .run = frontier_run,
};

/* `gimbal plan --cost galvatron`: plans of our searches next to the best of Galvatron's space, each
 * judged by that project's formula, by a simulation, and by our own programs. */

/* The searches that are compared if --search names none. */
static const char *const referees_compared[] = {"exact", "bmw", "uniform", NULL};

static const struct column referees_columns[] = {
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

static void referees_add_row(struct table *table, const struct galvatron_row *row)
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

static void referees_print_table(const struct common *common, const struct galvatron_rows *rows)
{
    struct table *table =
        table_create(referees_columns, sizeof referees_columns / sizeof *referees_columns);
    char memory[32];
    if (!common->no_headers)
        printf(
            "FORMULA, MEMORY and FITS are Galvatron's, which uses %s of a device; SIMULATED runs "
            "its stages as 1F1B\n",
            units_print_bytes(memory, sizeof memory, rows->memory_bytes));
    for (size_t i = 0; i < rows->count; i++)
        referees_add_row(table, &rows->items[i]);
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static json_t *referees_encode_row(const struct galvatron_row *row)
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

static void referees_print_json(const struct common *common, const struct galvatron_rows *rows)
{
    json_t *items = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append_new(items, referees_encode_row(&rows->items[i]));
    output_print_list((enum output)common->output, "PlanReferees", "plans", items, stdout);
}

static int referees_check(const struct common *common, const struct ask_values *ask,
                          const char *profile_dir, struct error *err)
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

static int referees_compare(const struct common *common, const struct ask_values *ask,
                            const struct offline *offline, const struct galvatron_profile *profile,
                            struct error *err)
{
    const char *const one[] = {ask->search, NULL};
    struct galvatron_rows rows;
    struct plan *given = NULL;
    int rc = ask->plan ? plan_load(ask->plan, &given, err) : 0;
    if (rc < 0)
        return exit_of_errno(rc);
    rc = galvatron_compare(&offline->request, profile, ask->search ? one : referees_compared, given,
                           &rows, err);
    if (rc == 0 && common->output >= OUTPUT_JSON)
        referees_print_json(common, &rows);
    else if (rc == 0)
        referees_print_table(common, &rows);
    galvatron_rows_finish(&rows);
    return exit_of_errno(rc);
}

/* hardware_dir NULL: the files about the machines are in profile_dir too. An enum exit_code. */
static int referees_run(const struct common *common, const struct ask_values *ask,
                        const char *profile_dir, const char *hardware_dir, struct error *err)
{
    struct ask_values plain = *ask;
    struct offline_request request;
    struct offline offline = {0};
    struct galvatron_profile profile;
    int code = referees_check(common, ask, profile_dir, err);
    plain.cost = NULL; /* what Galvatron did not measure comes from the cluster file */
    if (code == EXIT_DONE)
        code = ask_request(&plain, &request, err);
    if (code == EXIT_DONE)
        code = offline_open(&request, &offline, err);
    if (code == EXIT_DONE)
        code = exit_of_errno(galvatron_load(profile_dir, hardware_dir ? hardware_dir : profile_dir,
                                            graph_positions(offline.graph), &profile, err));
    if (code == EXIT_DONE)
        code = referees_compare(common, ask, &offline, &profile, err);
    offline_finish(&offline);
    return code;
}

#define ROWS 12

struct plan_values {
    struct ask_values ask;
    const char *profile_dir, *hardware_dir;
};

static const struct flag plan_flags[] = {
    ASK_FLAGS,
    {"dump-costs", 0, FLAG_TEXT, offsetof(struct plan_values, ask.dump), "FILE",
     "also write the costs, so that another program can solve the problem"},
    {"profile-dir", 0, FLAG_TEXT, offsetof(struct plan_values, profile_dir), "DIR",
     "with --cost galvatron: its profiles of the model (computation, memory)"},
    {"hardware-dir", 0, FLAG_TEXT, offsetof(struct plan_values, hardware_dir), "DIR",
     "its profiles of the machines (allreduce, p2p, overlap), if they are elsewhere"},
    {.name = NULL},
};

/* The text is printed as it is, because it is what users rely on. */
static int plan_print_json(enum output output, const char *text, struct error *err)
{
    return output_print_text(output, text, stdout)
               ? EXIT_DONE
               : error_set(err, EXIT_INTERNAL, "the plan is no JSON");
}

/* json: the best plan; jsonl: every candidate, the best one first. */
static int plan_print_candidates(enum output output, const struct offline *offline,
                                 struct error *err)
{
    int code = EXIT_DONE;
    size_t count = output == OUTPUT_JSONL ? offline->result.count : 1;
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
        char *text = plan_encode(offline->result.candidates[i].plan, offline->graph);
        code = plan_print_json(output, text, err);
        free(text);
    }
    return code;
}

static void plan_print_table(const struct common *common, const char *text)
{
    output_print_rows(text, common->output == OUTPUT_WIDE ? 0 : ROWS, !common->no_headers, stdout);
}

static void plan_print_result(const struct common *common, const struct planner_result *result)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    candidates_print(result, 0, out);
    fclose(out);
    plan_print_table(common, text);
    free(text);
}

static int plan_here(const struct invocation *invocation, const struct ask_values *values,
                     struct error *err)
{
    enum output output = (enum output)invocation->common.output;
    struct offline offline;
    int code = ask_run(&invocation->common, values, &offline, err);
    if (output == OUTPUT_SVG && offline.result.count > 0)
        frontier_draw(&offline.result, stdout);
    else if (output < OUTPUT_JSON && offline.result.count > 0)
        plan_print_result(&invocation->common, &offline.result);
    else if (code == EXIT_DONE)
        code = plan_print_candidates(output, &offline, err);
    offline_finish(&offline);
    return code;
}

static int plan_print_reply(const struct common *common, const Gimbal__PlanReply *reply,
                            struct error *err)
{
    enum output output = (enum output)common->output;
    if (!reply->plan)
        return error_set(err, EXIT_INTERNAL, "the coordinator's answer has no plan");
    if (output >= OUTPUT_JSON)
        return plan_print_json(output, reply->plan->json, err);
    plan_print_table(common, reply->explanation);
    return EXIT_DONE;
}

static int plan_there(const struct invocation *invocation, const struct ask_values *values,
                      struct error *err)
{
    struct client client = {0};
    struct job_config *job;
    char *text, *cluster = NULL;
    ProtobufCMessage *reply;
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    if (invocation->common.output == OUTPUT_SVG)
        return error_set(err, EXIT_USAGE, "--output svg needs --local or --cluster");
    if (values->measure)
        return error_set(err, EXIT_USAGE, "--measure needs --local");
    if (values->plan || values->memory || values->dump)
        return error_set(err, EXIT_USAGE, "--%s needs --local or --cluster",
                         values->plan     ? "plan"
                         : values->memory ? "memory"
                                          : "dump-costs");
    int code = jobfile_load(values->file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    job_config_destroy(job);
    if (values->cluster && file_read(values->cluster, &cluster, err) < 0)
        code = EXIT_INPUT;
    if (code == EXIT_DONE)
        code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE) {
        request.job_yaml = text;
        request.search = (char *)(values->search ? values->search : "");
        request.cluster_yaml = cluster ? cluster : (char *)"";
        request.cost = (char *)(values->cost ? values->cost : "");
        code = client_call(&client, COORDINATOR_PLAN, &request.base, 0, &reply, err);
        if (client.status == COORDINATOR_NO_PLAN)
            code = EXIT_NO_PLAN;
    }
    if (code == EXIT_DONE) {
        code = plan_print_reply(&invocation->common, (const Gimbal__PlanReply *)reply, err);
        message_free(reply);
    }
    client_close(&client);
    free(cluster);
    free(text);
    return values->cluster ? code : living_suggest(code, err);
}

static int plan_run(const struct invocation *invocation, struct error *err)
{
    const struct plan_values *given = invocation->values;
    struct ask_values values = given->ask;
    int code = jobfile_path(invocation, &values.file, err);
    if (code != EXIT_DONE)
        return code;
    if (values.cost && strcmp(values.cost, GALVATRON_COST) == 0)
        return referees_run(&invocation->common, &values, given->profile_dir, given->hardware_dir,
                            err);
    if (given->profile_dir || given->hardware_dir)
        return error_set(err, EXIT_USAGE, "--%s needs --cost galvatron",
                         given->profile_dir ? "profile-dir" : "hardware-dir");
    return values.local || (values.cluster && !invocation->common.address)
               ? plan_here(invocation, &values, err)
               : plan_there(invocation, &values, err);
}

static const struct command *const plan_below[] = {
    &command_plan_diff,  &command_plan_explain, &command_plan_frontier, &command_plan_show,
    &command_plan_trace, &command_plan_what_if, &command_plan_why_not,  NULL};

const struct command command_plan = {
    .name = "plan",
    .summary = "Show how a job would be divided, and the alternatives",
    .arguments = "JOB-FILE",
    .arguments_max = 1,
    .flags = plan_flags,
    .values_size = sizeof(struct plan_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT | TAKES_DRAWING,
    .below = plan_below,
    .run = plan_run,
};
