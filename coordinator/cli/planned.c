/* planned.c - a plan from a file, a search or a job of the cluster; all of them are checked the
 * same way. */
#include "coordinator/cli/planned.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/program/lower.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/search.h"
#include "coordinator/planner/check.h"

/* Decode and check a plan for the job in *out. */
static int planned_take(const char *json, struct planned *out, struct error *err)
{
    int rc = out->graph ? 0 : planner_graph(out->config, &out->graph, err);
    if (rc == 0)
        rc = plan_decode(json, &out->plan, err);
    if (rc == 0)
        rc = plan_check(out->plan, out->graph, err);
    if (rc == 0)
        out->json = xstrdup(json);
    return rc < 0 ? EXIT_INPUT : EXIT_DONE;
}

static int planned_open_file(const struct planned_flags *flags, struct planned *out,
                             struct error *err)
{
    char *text, *json = NULL;
    int code = jobfile_load(flags->file, &text, &out->config, err);
    if (code != EXIT_DONE)
        return code;
    free(text);
    int rc = file_read(flags->plan, &json, err);
    code = rc < 0 ? exit_of_errno(rc) : planned_take(json, out, err);
    if (code != EXIT_DONE && !(json && filekind_explain(json, flags->plan, FILE_PLAN, err)))
        error_prefix(err, code, "plan '%s'", flags->plan);
    free(json);
    return code;
}

static int planned_open_local(const struct planned_flags *flags, bool quiet, struct planned *out,
                              struct error *err)
{
    struct offline_request request = {.job_path = flags->file,
                                      .search = flags->search,
                                      .plan_path = flags->plan,
                                      .device_count = (int)flags->local,
                                      .measure = flags->measure,
                                      .quiet = quiet};
    struct offline offline;
    int code = offline_run(&request, &offline, err);
    if (code == EXIT_DONE) {
        out->plan = plan_copy(offline.best);
        out->json = plan_encode(offline.best, offline.graph);
        out->machine = offline.machine;
        out->config = offline.job;
        out->graph = offline.graph;
        offline.machine = (struct machine){0};
        offline.job = NULL;
        offline.graph = NULL;
    }
    offline_finish(&offline);
    return code;
}

static int planned_open_job(struct client *client, const char *job, struct planned *out,
                            struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = client_get_job(client, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (!reply->plan || !reply->spec)
        code =
            error_set(err, EXIT_PRECONDITION, "%s is %s and has no plan", job,
                      reply->status ? resource_job_state(reply->status->state) : "not described");
    else if (job_config_parse(reply->spec->yaml, strlen(reply->spec->yaml), job, &out->config,
                              err) < 0)
        code = EXIT_INPUT;
    else
        code = planned_take(reply->plan->json, out, err);
    out->epoch = reply->status ? reply->status->epoch : 0;
    message_free(&reply->base);
    return code;
}

static int planned_open_dry(struct client *client, const struct planned_flags *flags,
                            struct planned *out, struct error *err)
{
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    ProtobufCMessage *message;
    int code = jobfile_load(flags->file, &request.job_yaml, &out->config, err);
    if (code != EXIT_DONE)
        return code;
    request.search = (char *)(flags->search ? flags->search : "");
    code = client_call(client, COORDINATOR_PLAN, &request.base, 0, &message, err);
    free(request.job_yaml);
    if (code != EXIT_DONE)
        return client->status == COORDINATOR_NO_PLAN ? EXIT_NO_PLAN : code;
    const Gimbal__PlanReply *reply = (const Gimbal__PlanReply *)message;
    code = reply->plan ? planned_take(reply->plan->json, out, err)
                       : error_set(err, EXIT_INTERNAL, "the coordinator's answer has no plan");
    message_free(message);
    return code;
}

int planned_job(const struct invocation *invocation, const char **job, struct error *err)
{
    *job = invocation->argument_count > 0 ? invocation->arguments[0] : NULL;
    if (!*job || !named_path(*job))
        return EXIT_DONE;
    return error_set(
        err, EXIT_USAGE,
        "'%s' is a file, not a JOB: give a job file with -f, and a saved plan with --plan", *job);
}

static int planned_check_flags(const struct planned_flags *flags, const char *job,
                               struct error *err)
{
    if (job && (flags->file || flags->plan || flags->local || flags->search))
        return error_set(err, EXIT_USAGE,
                         "give either a JOB, or a job file and how to plan it, but not both");
    if (flags->measure && !flags->local)
        return error_set(err, EXIT_USAGE, "--measure needs --local");
    if (!job && !flags->file)
        return error_set(err, EXIT_USAGE, "needs a JOB, or a job file: -f job.yaml");
    if (flags->plan && flags->search)
        return error_set(err, EXIT_USAGE, "--plan is used as it is: leave out --search");
    return EXIT_DONE;
}

int planned_open(const struct common *common, const struct planned_flags *flags, const char *job,
                 struct planned *out, struct error *err)
{
    struct client client = {0};
    *out = (struct planned){0};
    int code = planned_check_flags(flags, job, err);
    if (code != EXIT_DONE)
        return code;
    if (flags->local)
        return planned_open_local(flags, common->quiet, out, err);
    if (flags->plan)
        return planned_open_file(flags, out, err);
    code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = job ? planned_open_job(&client, job, out, err)
                   : planned_open_dry(&client, flags, out, err);
    client_close(&client);
    return code;
}

int planned_rate(const struct common *common, struct planned *planned, struct error *err)
{
    struct inventory nodes;
    if (planned->machine.count > 0 || planned->fleet.count > 0)
        return EXIT_DONE;
    int code = living_nodes(common, true, &nodes, err);
    if (code == EXIT_DONE)
        code = living_fleet(&nodes, planned->plan, PLANNING_BEST, &planned->fleet, err);
    inventory_finish(&nodes);
    return code;
}

struct planner_request planned_request(const struct planned *planned)
{
    bool here = planned->machine.count > 0;
    return (struct planner_request){
        .graph = planned->graph,
        .job = planned->config,
        .devices = here ? planned->machine.devices : planned->fleet.devices,
        .device_count = here ? planned->machine.count : (int)planned->fleet.count};
}

void planned_finish(struct planned *planned)
{
    plan_destroy(planned->plan);
    graph_destroy(planned->graph);
    job_config_destroy(planned->config);
    free(planned->json);
    machine_finish(&planned->machine);
    fleet_finish(&planned->fleet);
    *planned = (struct planned){0};
}

int planned_lower(const struct planned *planned, int64_t rank, struct program **out,
                  struct error *err)
{
    int ranks = plan_ranks(planned->plan);
    if (rank >= ranks)
        return error_set(err, EXIT_USAGE, "the plan has no rank %lld: its ranks are 0 to %d",
                         (long long)rank, ranks - 1);
    return exit_of_errno(lower(planned->graph, planned->plan, (int)rank, out, err));
}
