/* explain.c - `gimbal plan explain`: where the time and the memory of a plan go, block by block,
 * and what each block waits for most. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/plan/drawings.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/search.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "coordinator/planner/costs/plan_diff.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/explain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct flag plan_explain_flags[] = {ASK_FLAGS, {.name = NULL}};

static const struct column plan_explain_columns[] = {
    {.name = "BLOCK"},
    {.name = "STAGE", .right = true},
    {.name = "DIVISION"},
    {.name = "COMPUTE", .right = true},
    {.name = "HOST LINKS", .right = true},
    {.name = "NETWORK", .right = true},
    {.name = "SENT", .right = true},
    {.name = "LEAST", .right = true},
    {.name = "SENT/LEAST", .right = true},
    {.name = "STATE", .right = true},
    {.name = "SAVED", .right = true},
    {.name = "BOUND BY"},
};

/* Add the least that has to be sent, and how many times as much is sent; both are empty without
 * matrix products. */
static void plan_explain_add_distance(struct table *table, const struct explained *it)
{
    char text[32] = "", distance[32] = "";
    if (it->least_bytes > 0) {
        units_print_bytes(text, sizeof text, it->least_bytes);
        snprintf(distance, sizeof distance, "%.2f", explained_distance(it));
    }
    table_add(table, "%s", text);
    table_add(table, "%s", distance);
}

static void plan_explain_add_row(struct table *table, const char *name, int stage,
                                 const char *division, const struct explained *it,
                                 int micro_batches)
{
    struct explain_seconds step = explained_step(it, micro_batches);
    char text[32];
    table_add(table, "%s", name);
    table_add(table, "%d", stage);
    table_add(table, "%s", division);
    table_add(table, "%s", units_print_seconds(text, sizeof text, step.compute));
    table_add(table, "%s", units_print_seconds(text, sizeof text, step.host));
    table_add(table, "%s", units_print_seconds(text, sizeof text, step.network));
    table_add(table, "%s",
              units_print_bytes(text, sizeof text, it->host_bytes + it->network_bytes));
    plan_explain_add_distance(table, it);
    table_add(table, "%s", units_print_bytes(text, sizeof text, (double)it->state_bytes));
    table_add(table, "%s", units_print_bytes(text, sizeof text, (double)it->saved_bytes));
    table_add(table, "%s", explain_bound(&step));
}

static void plan_explain_print_table(const struct common *common, const struct offline *offline,
                                     const struct explanation *explanation)
{
    const struct plan *plan = offline->best;
    struct table *table = table_create(plan_explain_columns,
                                       sizeof plan_explain_columns / sizeof *plan_explain_columns);
    char text[128];
    for (int b = 0; b < plan->block_count; b++)
        plan_explain_add_row(table, offline->graph->blocks[b].name, plan->blocks[b].stage,
                             plan_print_block(text, sizeof text, plan, b), &explanation->blocks[b],
                             plan->micro_batches);
    for (int stage = 0; stage < plan->stage_count; stage++)
        plan_explain_add_row(table, "(all blocks)", stage, "", &explanation->rest[stage],
                             plan->micro_batches);
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

static json_t *plan_explain_encode_seconds(const struct explain_seconds *seconds)
{
    return json_pack("{s:f, s:f, s:f}", "compute_s", seconds->compute, "host_s", seconds->host,
                     "network_s", seconds->network);
}

static json_t *plan_explain_encode(const char *name, int stage, const struct explained *it,
                                   int micro_batches)
{
    struct explain_seconds step = explained_step(it, micro_batches);
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:I, s:I, s:f, s:f, s:f, s:s}", "name", name,
                     "stage", stage, "forward", plan_explain_encode_seconds(&it->forward),
                     "backward", plan_explain_encode_seconds(&it->backward), "once",
                     plan_explain_encode_seconds(&it->once), "state_bytes",
                     (json_int_t)it->state_bytes, "saved_bytes", (json_int_t)it->saved_bytes,
                     "host_bytes", it->host_bytes, "network_bytes", it->network_bytes,
                     "least_bytes", it->least_bytes, "bound_by", explain_bound(&step));
}

static void plan_explain_print_json(const struct common *common, const struct offline *offline,
                                    const struct explanation *explanation)
{
    const struct plan *plan = offline->best;
    json_t *blocks = json_array(), *stages = json_array();
    for (int b = 0; b < plan->block_count; b++)
        json_array_append_new(
            blocks, plan_explain_encode(offline->graph->blocks[b].name, plan->blocks[b].stage,
                                        &explanation->blocks[b], plan->micro_batches));
    for (int stage = 0; stage < plan->stage_count; stage++) {
        json_t *rest =
            plan_explain_encode("", stage, &explanation->rest[stage], plan->micro_batches);
        json_object_set_new(rest, "rank", json_integer(explanation->ranks[stage]));
        json_object_set_new(rest, "other_bytes",
                            json_integer((json_int_t)explanation->other_bytes[stage]));
        json_array_append_new(stages, rest);
    }
    output_print_object(
        (enum output)common->output,
        resource_object("PlanExplanation",
                        json_pack("{s:s, s:i, s:o, s:o}", "plan", plan->id, "micro_batches",
                                  plan->micro_batches, "blocks", blocks, "stages", stages)),
        stdout);
}

/* The words above the table: what it is about, and how to read its times. */
static void plan_explain_print_head(const struct plan *plan)
{
    char division[96], step[32];
    printf("%s, %s: %s a step. Each stage's times are those of its slowest rank, over the %d "
           "micro-batch%s of a step; LEAST is what each matrix product of a block has to send, "
           "added up\n",
           plan->id, plan_print(division, sizeof division, plan),
           units_print_seconds(step, sizeof step, plan->predicted.step_time_s), plan->micro_batches,
           plan->micro_batches == 1 ? "" : "es");
}

static int plan_explain_found(const struct common *common, const struct offline *offline,
                              struct error *err)
{
    struct shared_cores used;
    struct explanation explanation = {0};
    int rc = shared_cores_order(&offline->request, offline->best, &used, err);
    struct planner_request request = shared_cores_ask(&offline->request, &used);
    if (rc == 0 && common->output == OUTPUT_SVG)
        rc = lanes_draw(&request, offline->best, stdout, err);
    else if (rc == 0)
        rc = explain_plan(&request, offline->best, &explanation, err);
    if (rc == 0 && (common->output == OUTPUT_JSON || common->output == OUTPUT_JSONL)) {
        plan_explain_print_json(common, offline, &explanation);
    } else if (rc == 0 && common->output != OUTPUT_SVG) {
        if (!common->no_headers)
            plan_explain_print_head(offline->best);
        plan_explain_print_table(common, offline, &explanation);
    }
    explanation_finish(&explanation);
    shared_cores_finish(&used);
    return exit_of_errno(rc);
}

static int plan_explain_asked(const struct common *common, const struct ask_values *ask,
                              struct error *err)
{
    struct offline offline;
    int code = ask_run(common, ask, &offline, err);
    if (code == EXIT_DONE)
        code = plan_explain_found(common, &offline, err);
    offline_finish(&offline);
    return code;
}

/* Explain the plan of a job in the cluster, instead of one from a file or a search. */
static int plan_explain_job(const struct common *common, const char *job, struct ask_values *ask,
                            struct error *err)
{
    Gimbal__GetJobReply *reply;
    if (ask->file || ask->plan || ask->search)
        return error_set(err, EXIT_USAGE,
                         "give either a JOB, or a job file and how to plan it, but not both");
    int code = client_get_job_once(common, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (reply->plan && reply->spec) {
        ask->file = ask->plan = job;
        ask->job_text = reply->spec->yaml;
        ask->plan_text = reply->plan->json;
        code = plan_explain_asked(common, ask, err);
    } else {
        code = error_set(err, EXIT_PRECONDITION, "%s has no plan at the moment", job);
    }
    message_free(&reply->base);
    return code;
}

static int plan_explain_run(const struct invocation *invocation, struct error *err)
{
    struct ask_values ask = *(const struct ask_values *)invocation->values;
    const char *what = invocation->argument_count ? invocation->arguments[0] : NULL;
    if (what && named_job(what) && access(what, F_OK) < 0)
        return plan_explain_job(&invocation->common, what, &ask, err);
    if (what)
        ask.file = what;
    return plan_explain_asked(&invocation->common, &ask, err);
}

const struct command command_plan_explain = {
    .name = "plan explain",
    .summary = "Show where a plan's time and memory go; -o svg draws a step",
    .arguments = "JOB|JOB-FILE",
    .arguments_max = 1,
    .flags = plan_explain_flags,
    .values_size = sizeof(struct ask_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT | TAKES_DRAWING,
    .run = plan_explain_run,
};
