/* workers.c - the calls of workers.
 *
 * A worker's instance is the random number of its rpc client, so that a closed connection, a
 * heartbeat and a report of a rank all name the same life of the worker. */
#include "coordinator/service/internal.h"

#include "common/hardware/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t caller_of(struct rpc_call *call)
{
    return rpc_call_envelope(call)->client;
}

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
    for (size_t i = 0; i < job->rank_count; i++) {
        *out = job;
        const struct device_ref *device = &job->ranks[i].device;
        if ((!rank || *rank == i) && device->instance == caller_of(call) &&
            strcmp(device->worker, rpc_call_envelope(call)->caller) == 0)
            return 0;
    }
    return error_set(err, -ESTALE, "%s has no such rank on this instance of worker '%s'", id,
                     rpc_call_envelope(call)->caller);
}

/* Whatever it calls for: a busy node sends its heartbeats late and its ranks' calls all the same,
 * and after a restart of ours Hello comes first, over a slow network long before a heartbeat. */
void service_hear(void *data, unsigned from, const Gimbal__Envelope *envelope)
{
    struct service *service = data;
    const struct service_options *options = &service->options;
    bool follows = envelope->term == options->term && envelope->instance == options->instance;
    if (from & RPC_WORKER)
        membership_hear(service->membership, envelope->caller, envelope->client, follows,
                        service_now_ms(service), &service->happened);
}

static void report_hardware(struct rpc_call *call, void *data)
{
    struct service *service = data;
    struct error err;
    struct hardware_report *report;
    const Gimbal__HardwareReport *request = rpc_call_request(call);
    int rc = service_speaks_for(call, request->node, &err);
    if (rc == 0)
        rc = hardware_report_from_wire(request, &report, &err);
    if (rc == 0) {
        rc = membership_report(service->membership, caller_of(call), report,
                               service_now_ms(service), &service->happened, &err);
        hardware_report_destroy(report);
    }
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__ReportHardwareReply reply = GIMBAL__REPORT_HARDWARE_REPLY__INIT;
    reply.heartbeat_ms = (uint32_t)service->options.membership.heartbeat_ms;
    reply.lease_ms = (uint32_t)service->options.membership.dead_ms;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

static void heartbeat(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__HeartbeatRequest *request = rpc_call_request(call);
    struct error err;
    uint64_t instance = caller_of(call);
    int rc = service_speaks_for(call, request->node, &err);
    if (rc == 0)
        rc = membership_heartbeat(service->membership, request->node, instance,
                                  service_now_ms(service), &service->happened, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    service_hear_positions(service, call, request);
    service_turn(service);
    const struct stream *stream = assignments_stream(service->assignments, instance);
    Gimbal__HeartbeatReply reply = GIMBAL__HEARTBEAT_REPLY__INIT;
    reply.revision = stream ? stream_revision(stream) : 0;
    rpc_call_reply(call, &reply.base);
}

static void watch_assignments(struct rpc_call *call, void *data)
{
    struct service *service = data;
    char parked[PARKED_SIZE];
    uint64_t instance = caller_of(call);
    const struct worker *worker =
        membership_find(service->membership, rpc_call_envelope(call)->caller);
    const struct stream *stream = assignments_stream(service->assignments, instance);
    if (!stream || !worker || worker->instance != instance) {
        rpc_call_fail(call, RPC_FAILED_PRECONDITION,
                      "this instance of worker '%s' has not registered, or was lost",
                      rpc_call_envelope(call)->caller);
        return;
    }
    rpc_call_reply_stream(call, stream, assignments_parked(parked, instance));
}

/* The job in this epoch, while it holds its devices, if the caller has that rank of it. */
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
    rpc_call_reply(call, &reply.base); /* the request is gone with it */
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

/* No other try of this job is of any use; the words are err's. */
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

/* Both sides have lowered the same plan; other programs mean other releases. */
static int check_hash(struct service *service, const struct job *job,
                      const Gimbal__ReadyRequest *request, struct error *err)
{
    if (request->rank >= job_trainers(job))
        return 0; /* it runs none */
    uint64_t right = dossier_find(service, job->id)->planning.hashes[request->rank];
    if (request->program_hash == right)
        return 0;
    error_set(err, -ESTALE,
              "it lowered program %016" PRIx64 " from the plan, the coordinator %016" PRIx64
              ": worker '%s' runs another release",
              request->program_hash, right, job->ranks[request->rank].device.worker);
    return refuse(service, job, request, JOB_REASON_PROGRAM_REFUSED, err);
}

/* All ranks read the same files, in this epoch and the next ones. */
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

/* Of a job that has ended it is no news, and no mistake. */
static void stopped(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__StoppedRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc =
        service_find_rank(service, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0) {
        bool done = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
        bool damaged = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED;
        bool stalled = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__STALLED;
        bool fault = damaged || stalled || request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
        if (damaged)
            service_damage_checkpoint(service, job, request->step, request->reason);
        struct job_event event = {.kind = JOB_EVENT_EXITED,
                                  .job = request->job,
                                  .epoch = (uint32_t)request->epoch,
                                  .rank = request->rank,
                                  .words = request->reason,
                                  .exited = {.status = done ? EXIT_SUCCESS : EXIT_FAILURE,
                                             .step = request->step,
                                             .by_others = !done && !fault,
                                             .damaged = damaged,
                                             .stalled = stalled}};
        rc = service_apply(service, &event, &err);
    }
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__StoppedReply reply = GIMBAL__STOPPED_REPLY__INIT;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

const struct service_handler worker_handlers[] = {
    {COORDINATOR_HELLO, rpc_hello},     {COORDINATOR_REPORT_HARDWARE, report_hardware},
    {COORDINATOR_HEARTBEAT, heartbeat}, {COORDINATOR_WATCH_ASSIGNMENTS, watch_assignments},
    {COORDINATOR_RENDEZVOUS, meet},     {COORDINATOR_READY, ready},
    {COORDINATOR_STOPPED, stopped},     {0, NULL},
};
