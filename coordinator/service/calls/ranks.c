/* ranks.c - the calls of workers for the ranks that they run: to find the other ranks, to report
 * that a rank is ready, and that it has ended. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int service_find_rank(const struct service *service, struct rpc_call *call, const char *id,
                      uint64_t epoch, const uint32_t *rank, const struct job **out,
                      struct error *err)
{
    const struct job *job = jobs_find(service->jobs, id);
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    if (job->epoch != epoch)
        return error_set(err, -ESTALE,
                         "%s is in epoch %u: a message of epoch %" PRIu64 " comes too late", id,
                         job->epoch, epoch);
    const Gimbal__Envelope *envelope = rpc_call_envelope(call);
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *device = &job->ranks[i].device;
        if ((rank && *rank != i) || device->instance != envelope->client ||
            strcmp(device->worker, envelope->caller) != 0)
            continue;
        *out = job;
        return 0;
    }
    return error_set(err, -ESTALE, "%s has no such rank on this instance of worker '%s'", id,
                     envelope->caller);
}

/* Find the job in this epoch, provided that it holds its devices and the caller has that rank of
 * it. */
static int find_job(const struct service *service, struct rpc_call *call, const char *id,
                    uint64_t epoch, const uint32_t *rank, const struct job **out, struct error *err)
{
    int rc = service_find_rank(service, call, id, epoch, rank, out, err);
    if (rc == 0 && !(*out)->holding)
        return error_set(err, -ESTALE, "%s is %s: a message of epoch %" PRIu64 " comes too late",
                         id, job_state_name((*out)->state), epoch);
    return rc;
}

static void put_value(struct rpc_call *call, struct service *service,
                      const Gimbal__RendezvousRequest *request)
{
    struct error err;
    char parked[PARKED_SIZE];
    int rc = rendezvous_put(service->rendezvous, request->job, request->epoch, request->key,
                            request->value.data, request->value.len, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    if (strncmp(request->key, RENDEZVOUS_KEPT, strlen(RENDEZVOUS_KEPT)) == 0)
        store_put_value(service->options.store, request->job, request->epoch, request->key,
                        request->value.data, request->value.len);
    rendezvous_parked(parked, request->job, request->epoch);
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    rpc_call_reply(call, &reply.base); /* this frees the request */
    rpc_server_wake(service->server, parked);
}

/* Two ranks of one worker may wait for the same key: the call's own number tells them apart. */
static void get_value(struct rpc_call *call, struct service *service,
                      const Gimbal__RendezvousRequest *request)
{
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    const void *value;
    char parked[PARKED_SIZE];
    if (!rendezvous_get(service->rendezvous, request->job, request->epoch, request->key, &value,
                        &reply.value.len)) {
        rpc_call_park(call, rendezvous_parked(parked, request->job, request->epoch),
                      rpc_call_envelope(call)->call_id);
        return;
    }
    reply.there = true;
    reply.value.data = (uint8_t *)value;
    rpc_call_reply(call, &reply.base);
}

static void meet(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__RendezvousRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc = find_job(service, call, request->job, request->epoch, NULL, &job, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else if (request->put)
        put_value(call, service, request);
    else
        get_value(call, service, request);
}

/* Fail the job for good with the message in err, since no other try would help. Returns -ESTALE. */
static int refuse(struct service *service, const struct job *job,
                  const Gimbal__ReadyRequest *request, enum job_reason reason,
                  const struct error *err)
{
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .rank = request->rank,
                              .words = err->text,
                              .exited = {.status = EXIT_FAILURE, .refused = reason}};
    service_apply(service, &event, NULL);
    return -ESTALE;
}

/* Worker and coordinator have lowered the same plan, so a different program means a different
 * release. */
static int check_hash(struct service *service, const struct job *job,
                      const Gimbal__ReadyRequest *request, struct error *err)
{
    if (request->rank >= job_trainers(job))
        return 0; /* it runs no program */
    uint64_t right = dossier_find(service, job->id)->planning.hashes[request->rank];
    if (request->program_hash == right)
        return 0;
    error_set(err, -ESTALE,
              "it lowered the plan to program %016" PRIx64 ", the coordinator to %016" PRIx64
              ": worker '%s' runs another release",
              request->program_hash, right, job->ranks[request->rank].device.worker);
    return refuse(service, job, request, JOB_REASON_PROGRAM_REFUSED, err);
}

/* All ranks have to read the same files, in this epoch and in later ones. */
static int check_data(struct service *service, const struct job *job,
                      const Gimbal__ReadyRequest *request, struct error *err)
{
    struct dossier *dossier = dossier_find(service, job->id);
    struct corpus *corpus =
        corpus_create(job->ranks[request->rank].device.worker, (uint32_t)request->epoch);
    for (size_t i = 0; i < request->n_files; i++)
        corpus_add(corpus, request->files[i]->path, request->files[i]->size,
                   request->files[i]->hash);
    if (!dossier->corpus) {
        dossier->corpus = corpus;
        store_put_corpus(service->options.store, job, corpus);
        return 0;
    }
    int rc = corpus_compare(dossier->corpus, corpus, err);
    corpus_destroy(corpus);
    if (rc == 0)
        return 0;
    error_prefix(err, rc, "the data are not the same on all nodes");
    return refuse(service, job, request, JOB_REASON_DATA_REFUSED, err);
}

static void ready(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__ReadyRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc = find_job(service, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0 && job->state == JOB_STARTING)
        rc = check_hash(service, job, request, &err);
    if (rc == 0 && job->state == JOB_STARTING)
        rc = check_data(service, job, request, &err);
    if (rc == 0) {
        if (job->ranks[request->rank].state == JOB_RANK_WAITING)
            replan_ready(&dossier_find(service, job->id)->replan, request);
        struct job_event event = {.kind = JOB_EVENT_READY,
                                  .job = request->job,
                                  .epoch = (uint32_t)request->epoch,
                                  .rank = request->rank,
                                  .step = request->step};
        rc = service_apply(service, &event, &err);
    }
    service_turn(service);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__ReadyReply reply = GIMBAL__READY_REPLY__INIT;
    rpc_call_reply(call, &reply.base);
}

/* Data that could not be read by a job without any progress will not be readable on another try. If
 * the job has trained before, the fault is a node's. */
static enum job_reason refusal_of(const struct job *job, const Gimbal__StoppedRequest *request)
{
    bool data = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA;
    bool fresh = job->step == 0 && job->reached_step == 0 && job->checkpoint_step == 0;
    return data && fresh ? JOB_REASON_DATA_REFUSED : JOB_REASON_NONE;
}

/* How a rank has ended, as an event. */
static struct job_event exit_of(const Gimbal__StoppedRequest *request)
{
    bool done = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
    bool damaged = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED;
    bool stalled = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__STALLED;
    bool memory = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY;
    bool fault = damaged || stalled || memory ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
    return (struct job_event){.kind = JOB_EVENT_EXITED,
                              .job = request->job,
                              .epoch = (uint32_t)request->epoch,
                              .rank = request->rank,
                              .words = request->reason,
                              .exited = {.status = done ? EXIT_SUCCESS : EXIT_FAILURE,
                                         .step = request->step,
                                         .by_others = !done && !fault,
                                         .damaged = damaged,
                                         .stalled = stalled,
                                         .out_of_memory = memory}};
}

/* Act on what the exit means beyond this job, once: a worker repeats its report until it hears an
 * answer. */
static void judge_exit(struct service *service, const struct job *job,
                       const Gimbal__StoppedRequest *request, struct job_event *event)
{
    if (job->ranks[request->rank].state >= JOB_RANK_EXITED)
        return;
    if (event->exited.damaged)
        service_damage_checkpoint(service, job, request->step, request->reason);
    if (request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY)
        event->exited.out_of_memory = service_has_host_memory(service, job, request->rank);
    if (event->exited.out_of_memory)
        event->exited.memory_max = service_lower_memory(service, job, request->rank);
    event->exited.refused = refusal_of(job, request);
}

/* A report about a job that has ended is neither news nor a mistake. */
static void stopped(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__StoppedRequest *request = rpc_call_request(call);
    struct job_event event = exit_of(request);
    const struct job *job;
    struct error err;
    int rc =
        service_find_rank(service, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0)
        judge_exit(service, job, request, &event);
    if (rc == 0)
        rc = service_apply(service, &event, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__StoppedReply reply = GIMBAL__STOPPED_REPLY__INIT;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

const struct service_handler rank_handlers[] = {
    {COORDINATOR_RENDEZVOUS, meet},
    {COORDINATOR_READY, ready},
    {COORDINATOR_STOPPED, stopped},
    {0, NULL},
};
