/* small_job.c - requests filled from a job or an assignment. */
#include "tests/cluster/small_job.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/program/lower.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/planner.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

char *job_yaml(const char *model, const char *more)
{
    return xasprintf("apiVersion: gimbal/v1\n"
                     "name: small\n"
                     "model: {%s}\n"
                     "data: {text: [/data/corpus.txt]}\n"
                     "train: {steps: 3, global_batch: 4, lr: 0.001}\n"
                     "%s",
                     model, more);
}

const char *const patient[] = {"--heartbeat", "10m", "--dead-after", "1h", NULL};

const char small[] = "family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16";

Gimbal__SubmitReply *ask_submit(struct party *user, const char *model, const char *more,
                                enum rpc_status *status, struct error *words)
{
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    spec.yaml = job_yaml(model, more);
    request.spec = &spec;
    Gimbal__SubmitReply *reply = party_ask(user, COORDINATOR_SUBMIT, &request, status, words);
    free(spec.yaml);
    return reply;
}

Gimbal__SubmitReply *submit(struct party *user, const char *model, const char *more)
{
    enum rpc_status status;
    struct error words;
    Gimbal__SubmitReply *reply = ask_submit(user, model, more, &status, &words);
    ck_assert_msg(status == RPC_OK, "%s: %s", rpc_status_name(status), words.text);
    return reply;
}

Gimbal__GetJobReply *get_job(struct party *user, const char *job)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    request.job = (char *)job;
    return party_call(user, COORDINATOR_GET_JOB, &request);
}

void assert_job(struct party *user, const char *job, Gimbal__JobStatus__State state,
                const char *reason)
{
    Gimbal__GetJobReply *reply = get_job(user, job);
    ck_assert_msg(reply->status->state == state, "%s is in state %d: %s", job,
                  (int)reply->status->state, reply->status->reason);
    ck_assert_msg(strstr(reply->status->reason, reason) != NULL, "%s", reply->status->reason);
    message_free(&reply->base);
}

uint64_t lowered_hash(const Gimbal__Assignment *assignment)
{
    struct error err = {""};
    struct job_config *config;
    struct graph *graph;
    struct plan *plan;
    struct program *program;
    int rc =
        job_config_parse(assignment->job_yaml, strlen(assignment->job_yaml), "job", &config, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_msg(planner_graph(config, &graph, &err) == 0, "%s", err.text);
    ck_assert_msg(plan_decode(assignment->plan->json, &plan, &err) == 0, "%s", err.text);
    ck_assert_msg(lower(graph, plan, (int)assignment->rank, &program, &err) == 0, "%s", err.text);
    uint64_t hash = program_hash(program);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    job_config_destroy(config);
    return hash;
}

Gimbal__ReadyRequest ready_request(const Gimbal__Assignment *assignment)
{
    Gimbal__ReadyRequest request = GIMBAL__READY_REQUEST__INIT;
    request.job = assignment->job;
    request.epoch = assignment->epoch;
    request.rank = assignment->rank;
    request.program_hash = lowered_hash(assignment);
    return request;
}

void tell_ready(struct party *worker, const Gimbal__Assignment *assignment)
{
    Gimbal__ReadyRequest request = ready_request(assignment);
    party_tell(worker, COORDINATOR_READY, &request);
}

void tell_stopped(struct party *worker, const Gimbal__Assignment *assignment,
                  Gimbal__StoppedRequest__Cause cause, const char *reason)
{
    Gimbal__StoppedRequest request = GIMBAL__STOPPED_REQUEST__INIT;
    request.job = assignment->job;
    request.epoch = assignment->epoch;
    request.rank = assignment->rank;
    request.cause = cause;
    request.reason = (char *)reason;
    party_tell(worker, COORDINATOR_STOPPED, &request);
}

const Gimbal__Assignment *await_assignment(struct cluster *cluster, struct party *worker)
{
    return cluster_record(cluster, worker, GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT)->assignment;
}
