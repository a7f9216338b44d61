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

/* `gimbal plan --cost galvatron`: plans of our searches next to the best by Galvatron's accounting,
 * each judged by that project's formula, by a simulation, and by our own programs. */

/* The searches that are compared if --search names none: with a job, and without. */
static const char *const referees_compared[] = {"exact", "bmw", NEUTRAL_SEARCH, NULL};
static const char *const referees_theirs[] = {NEUTRAL_SEARCH, NULL};

static const struct column referees_columns[] = {
    {.name = "FROM"},
    {.name = "DIVISION"},
    {.name = "FORMULA", .right = true},
    {.name = "NEUTRAL", .right = true},
    {.name = "MEMORY", .right = true},
    {.name = "FITS"},
    {.name = "OUR PROGRAMS", .right = true},
    {.name = "OUR MEMORY", .right = true},
    {.name = "NOTE"},
};

static int64_t referees_memory_mb(const struct galvatron_verdict *verdict)
{
    int64_t most = 0;
    for (int i = 0; i < verdict->stages; i++)
        most = verdict->stage[i].mb > most ? verdict->stage[i].mb : most;
    return most;
}

/* The words of both judges and what is outside of Galvatron's space. */
static void referees_print_note(const struct galvatron_row *row, char *out, size_t size)
{
    size_t used = 0;
    const char *words[] = {row->words.text, row->programs.text};
    *out = '\0';
    for (int i = 0; i < 2 && used < size; i++)
        if (words[i][0])
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "", words[i]);
    for (int i = 0; row->verdict && row->verdict->notes[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "",
                                 row->verdict->notes[i]);
}

static void referees_add_row(struct table *table, const struct galvatron_row *row)
{
    char division[512] = "", seconds[2][32] = {"", ""}, bytes[32] = "", own[2][32] = {"", ""};
    char note[2 * ERROR_SIZE];
    if (row->verdict) {
        units_print_seconds(seconds[0], sizeof seconds[0], row->verdict->formula_s);
        units_print_seconds(seconds[1], sizeof seconds[1], row->verdict->neutral_s);
        snprintf(bytes, sizeof bytes, "%lld MB", (long long)referees_memory_mb(row->verdict));
    }
    if (row->plan) {
        units_print_seconds(own[0], sizeof own[0], row->plan->predicted.step_time_s);
        units_print_bytes(own[1], sizeof own[1], (double)row->plan->predicted.memory_bytes_max);
    } else if (row->verdict) {
        strcpy(own[0], "none");
    }
    if (row->theirs.layers > 0)
        galvatron_plan_print(division, sizeof division, &row->theirs);
    else if (row->plan)
        plan_print(division, sizeof division, row->plan);
    referees_print_note(row, note, sizeof note);
    table_add(table, "%s", row->from);
    table_add(table, "%s", division);
    table_add(table, "%s", seconds[0]);
    table_add(table, "%s", seconds[1]);
    table_add(table, "%s", bytes);
    table_add(table, "%s", !row->verdict ? "" : row->verdict->fits ? "yes" : "no");
    table_add(table, "%s", own[0]);
    table_add(table, "%s", own[1]);
    table_add(table, "%s", note);
}

static void referees_print_table(const struct common *common, const struct galvatron_rows *rows,
                                 const struct galvatron_spec *spec)
{
    struct table *table =
        table_create(referees_columns, sizeof referees_columns / sizeof *referees_columns);
    if (!common->no_headers)
        printf("FORMULA, MEMORY and FITS are Galvatron's, which uses %lld of a device's %lld MB; "
               "NEUTRAL runs its stages as 1F1B\n",
               (long long)(galvatron_budget_mb(spec) - galvatron_reserve_mb(spec)),
               (long long)galvatron_budget_mb(spec));
    for (size_t i = 0; i < rows->count; i++)
        referees_add_row(table, &rows->items[i]);
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static json_t *referees_encode_verdict(const struct galvatron_row *row)
{
    const struct galvatron_verdict *verdict = row->verdict;
    json_t *stages = json_array(), *notes = json_array();
    for (int i = 0; i < verdict->stages; i++)
        json_array_append_new(stages, json_pack("{s:f, s:f, s:I}", "micro_batch_s",
                                                verdict->stage[i].seconds, "micro_batch_reduced_s",
                                                verdict->stage[i].reduced_s, "memory_MB",
                                                (json_int_t)verdict->stage[i].mb));
    for (int i = 0; verdict->notes[i]; i++)
        json_array_append_new(notes, json_string(verdict->notes[i]));
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o}", "formula_s",
                     verdict->formula_s, "neutral_s", verdict->neutral_s, "micro_batches",
                     (json_int_t)verdict->micro_batches, "memory_MB",
                     (json_int_t)referees_memory_mb(verdict), "budget_MB",
                     (json_int_t)verdict->budget_mb, "reserve_MB", (json_int_t)verdict->reserve_mb,
                     "fits", verdict->fits, "stages", stages, "outside", notes, "plan",
                     galvatron_plan_encode(&row->theirs));
}

/* Whole plans, in our terms and in theirs. */
static json_t *referees_encode_row(const struct galvatron_row *row, const struct graph *graph)
{
    json_t *object = json_pack("{s:s}", "from", row->from);
    char note[2 * ERROR_SIZE];
    if (row->plan) {
        char *text = plan_encode(row->plan, graph);
        json_object_update_new(
            object, json_pack("{s:f, s:I, s:o}", "step_time_s", row->plan->predicted.step_time_s,
                              "memory_bytes_max", (json_int_t)row->plan->predicted.memory_bytes_max,
                              "plan", json_loads(text, 0, NULL)));
        free(text);
    }
    if (row->verdict)
        json_object_set_new(object, "galvatron", referees_encode_verdict(row));
    referees_print_note(row, note, sizeof note);
    if (note[0])
        json_object_set_new(object, "note", json_string(note));
    return object;
}

static void referees_print_json(const struct common *common, const struct galvatron_rows *rows,
                                const struct graph *graph)
{
    json_t *items = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append_new(items, referees_encode_row(&rows->items[i], graph));
    output_print_list((enum output)common->output, "PlanReferees", "plans", items, stdout);
}

#define ROWS 12

struct plan_values {
    struct ask_values ask;
    const char *profile_dir, *hardware_dir, *spec;
};

static int referees_check(const struct common *common, const struct plan_values *values,
                          struct error *err)
{
    const struct ask_values *ask = &values->ask;
    if (!values->profile_dir)
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST " needs --profile-dir DIR, the folder of that "
                         "project's computation_profiling_*.json and memory_profiling_*.json");
    if (ask->local || common->address || (ask->file ? !ask->cluster : !values->spec))
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST " needs a job and --cluster FILE, the devices "
                         "and their memory, or --spec FILE, which says both in that project's "
                         "terms; and neither --local nor --address");
    if (!ask->file && ask->cluster)
        return error_set(err, EXIT_USAGE, "--cluster goes with a job: leave it out, or name one");
    if (common->output == OUTPUT_SVG || ask->dump)
        return error_set(err, EXIT_USAGE, "--%s does not go with --cost " GALVATRON_COST,
                         ask->dump ? "dump-costs" : "output svg");
    return EXIT_DONE;
}

/* Make the spec from the job, if there is one, and from the file, and read the profiles for it. */
static int referees_read(const struct plan_values *values, const struct planner_request *request,
                         struct galvatron_problem *out, struct error *err)
{
    struct galvatron_spec *spec = &out->spec;
    const char *hardware = values->hardware_dir ? values->hardware_dir : values->profile_dir;
    *spec = galvatron_spec_default();
    int rc = request ? galvatron_spec_of(request, spec, err) : 0;
    if (rc == 0 && values->spec) {
        rc = galvatron_spec_read(values->spec, spec, err);
        if (rc == 0)
            rc = galvatron_spec_check(spec, err);
        if (rc == 0 && request)
            rc = galvatron_spec_matches(request, spec, err);
        if (rc < 0)
            error_prefix(err, rc, "spec");
    }
    if (rc == 0 && values->ask.memory)
        spec->memory_gb = (double)values->ask.memory / (double)(1ull << 30);
    return rc < 0 ? rc : galvatron_load(values->profile_dir, hardware, spec, &out->profile, err);
}

static int referees_compare(const struct common *common, const struct plan_values *values,
                            const struct planner_request *request,
                            struct galvatron_problem *problem, struct error *err)
{
    const struct ask_values *ask = &values->ask;
    const char *const one[] = {ask->search, NULL};
    const char *const *names = ask->search ? one : request ? referees_compared : referees_theirs;
    struct galvatron_rows rows;
    struct galvatron_plan theirs;
    struct plan *given = NULL;
    bool is_theirs = ask->plan && galvatron_plan_is(ask->plan);
    int rc = 0;
    if (is_theirs)
        rc = galvatron_plan_read(ask->plan, &problem->spec, &theirs, err);
    else if (ask->plan)
        rc = plan_load(ask->plan, &given, err);
    if (rc < 0)
        return exit_of_errno(rc);
    if (is_theirs && problem->spec.batch == 0)
        problem->spec.batch = theirs.point.batch;
    rc = galvatron_compare(request, problem, names, given, is_theirs ? &theirs : NULL, &rows, err);
    if (rc == 0 && common->output >= OUTPUT_JSON)
        referees_print_json(common, &rows, request ? request->graph : NULL);
    else if (rc == 0)
        referees_print_table(common, &rows, &problem->spec);
    galvatron_rows_finish(&rows);
    return exit_of_errno(rc);
}

/* Without a job there are no devices and no graph, and no program of ours. An enum exit_code. */
static int referees_run(const struct common *common, const struct plan_values *values,
                        struct error *err)
{
    struct ask_values plain = values->ask;
    struct offline_request request;
    struct offline offline = {0};
    struct galvatron_problem problem;
    const struct planner_request *ours = NULL;
    int code = referees_check(common, values, err);
    plain.cost = NULL; /* what Galvatron did not measure comes from the cluster file */
    if (plain.search &&
        (strcmp(plain.search, GALVATRON_SEARCH) == 0 || strcmp(plain.search, NEUTRAL_SEARCH) == 0))
        plain.search = NULL;
    if (code == EXIT_DONE && plain.file) {
        code = ask_request(&plain, &request, err);
        if (code == EXIT_DONE)
            code = offline_open(&request, &offline, err);
        ours = &offline.request;
    }
    if (code == EXIT_DONE)
        code = exit_of_errno(referees_read(values, ours, &problem, err));
    if (code == EXIT_DONE)
        code = referees_compare(common, values, ours, &problem, err);
    offline_finish(&offline);
    return code;
}

static const struct flag plan_flags[] = {
    ASK_FLAGS,
    {"dump-costs", 0, FLAG_TEXT, offsetof(struct plan_values, ask.dump), "FILE",
     "also write the costs, so that another program can solve the problem"},
    {"profile-dir", 0, FLAG_TEXT, offsetof(struct plan_values, profile_dir), "DIR",
     "with --cost galvatron: its profiles of the model (computation, memory)"},
    {"hardware-dir", 0, FLAG_TEXT, offsetof(struct plan_values, hardware_dir), "DIR",
     "its profiles of the machines (allreduce, p2p, overlap), if they are elsewhere"},
    {"spec", 0, FLAG_TEXT, offsetof(struct plan_values, spec), "FILE",
     "its model, machines and flags, in place of or beside the job and the cluster"},
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
        return referees_run(
            &invocation->common,
            &(struct plan_values){values, given->profile_dir, given->hardware_dir, given->spec},
            err);
    if (given->profile_dir || given->hardware_dir || given->spec)
        return error_set(err, EXIT_USAGE, "--%s needs --cost galvatron",
                         given->profile_dir    ? "profile-dir"
                         : given->hardware_dir ? "hardware-dir"
                                               : "spec");
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
