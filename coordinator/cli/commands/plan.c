/* plan.c - `gimbal plan`: how a job would be divided, by the coordinator or for this machine. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobfile.h"
#include "coordinator/cli/offline.h"

#include "common/rpc/message.h"

#include <stdlib.h>

#define ROWS 12

struct plan_values {
    const char *file, *search, *plan, *dump;
    int64_t local;
};

static const struct flag plan_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct plan_values, file), "FILE", "the job file"},
    {"local", 0, FLAG_NUMBER, offsetof(struct plan_values, local), "N",
     "no coordinator: this machine's cores as N devices", .least = 1,
     .greatest = LOCAL_DEVICES_MAX},
    {"search", 0, FLAG_TEXT, offsetof(struct plan_values, search), "NAME",
     "the search, in place of the job's plan.search"},
    {"plan", 0, FLAG_TEXT, offsetof(struct plan_values, plan), "FILE",
     "price this plan in place of a search (with --local)"},
    {"dump-costs", 0, FLAG_TEXT, offsetof(struct plan_values, dump), "FILE",
     "also write what a second program needs to solve it (with --local)"},
    {.name = NULL},
};

/* The contract is the text itself. */
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

static int plan_here(const struct invocation *invocation, const struct plan_values *values,
                     struct error *err)
{
    enum output output = (enum output)invocation->common.output;
    struct offline_request request = {.job_path = values->file,
                                      .search = values->search,
                                      .plan_path = values->plan,
                                      .dump_path = values->dump,
                                      .device_count = (int)values->local};
    struct offline offline;
    int code = offline_run(&request, &offline, err);
    if (output < OUTPUT_JSON && offline.result.count > 0)
        planner_print(&offline.result, output == OUTPUT_WIDE ? 0 : ROWS, stdout);
    else if (code == EXIT_DONE)
        code = print_candidates(output, &offline, err);
    offline_finish(&offline);
    return code;
}

static int print_reply(enum output output, const Gimbal__PlanReply *reply, struct error *err)
{
    if (!reply->plan)
        return error_set(err, EXIT_INTERNAL, "the coordinator's answer has no plan");
    if (output >= OUTPUT_JSON)
        return print_json(output, reply->plan->json, err);
    output_print_rows(reply->explanation, output == OUTPUT_WIDE ? 0 : ROWS, stdout);
    return EXIT_DONE;
}

static int plan_there(const struct invocation *invocation, const struct plan_values *values,
                      struct error *err)
{
    struct client client = {0};
    struct job_config *job;
    char *text;
    ProtobufCMessage *reply;
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    if (values->plan || values->dump)
        return error_set(err, EXIT_USAGE, "--plan and --dump-costs go with --local");
    int code = jobfile_load(values->file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    job_config_destroy(job);
    code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE) {
        request.job_yaml = text;
        request.search = (char *)(values->search ? values->search : "");
        code = client_call(&client, COORDINATOR_PLAN, &request.base, 0, &reply, err);
        if (client.status == RPC_RESOURCE_EXHAUSTED)
            code = EXIT_NO_PLAN;
    }
    if (code == EXIT_DONE) {
        code = print_reply((enum output)invocation->common.output, (const Gimbal__PlanReply *)reply,
                           err);
        message_free(reply);
    }
    client_close(&client);
    free(text);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct plan_values *values = invocation->values;
    return values->local ? plan_here(invocation, values, err) : plan_there(invocation, values, err);
}

static const struct command *const below[] = {&command_plan_show, &command_plan_trace, NULL};

const struct command command_plan = {
    .name = "plan",
    .summary = "Show how a job would be divided, and what else was looked at",
    .arguments = "",
    .below = below,
    .flags = plan_flags,
    .values_size = sizeof(struct plan_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
