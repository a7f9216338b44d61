/* plan.c - `gimbal plan`: how a job would be divided, by the coordinator, for this machine, or for
 * a cluster that is only described in a file. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/plan/referees.h"
#include "coordinator/cli/drawings/frontier.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/search.h"

#include "common/base/file.h"
#include "common/rpc/message.h"

#include <stdlib.h>
#include <string.h>

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
static int print_json(enum output output, const char *text, struct error *err)
{
    return output_print_text(output, text, stdout)
               ? EXIT_DONE
               : error_set(err, EXIT_INTERNAL, "the plan is no JSON");
}

/* json: the best plan; jsonl: every candidate, the best one first. */
static int print_candidates(enum output output, const struct offline *offline, struct error *err)
{
    int code = EXIT_DONE;
    size_t count = output == OUTPUT_JSONL ? offline->result.count : 1;
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
        char *text = plan_encode(offline->result.candidates[i].plan, offline->graph);
        code = print_json(output, text, err);
        free(text);
    }
    return code;
}

static void print_table(const struct common *common, const char *text)
{
    output_print_rows(text, common->output == OUTPUT_WIDE ? 0 : ROWS, !common->no_headers, stdout);
}

static void print_result(const struct common *common, const struct planner_result *result)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    planner_print(result, 0, out);
    fclose(out);
    print_table(common, text);
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
        print_result(&invocation->common, &offline.result);
    else if (code == EXIT_DONE)
        code = print_candidates(output, &offline, err);
    offline_finish(&offline);
    return code;
}

static int print_reply(const struct common *common, const Gimbal__PlanReply *reply,
                       struct error *err)
{
    enum output output = (enum output)common->output;
    if (!reply->plan)
        return error_set(err, EXIT_INTERNAL, "the coordinator's answer has no plan");
    if (output >= OUTPUT_JSON)
        return print_json(output, reply->plan->json, err);
    print_table(common, reply->explanation);
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
        code = print_reply(&invocation->common, (const Gimbal__PlanReply *)reply, err);
        message_free(reply);
    }
    client_close(&client);
    free(cluster);
    free(text);
    return values->cluster ? code : living_suggest(code, err);
}

static int run(const struct invocation *invocation, struct error *err)
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

static const struct command *const below[] = {
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
    .below = below,
    .run = run,
};
