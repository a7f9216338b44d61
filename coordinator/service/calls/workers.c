/* workers.c - the calls of workers on their own behalf: what they have, that they are alive, and
 * what they are to do.
 *
 * A worker's instance is the random number of its RPC client, so that a closed connection, a
 * heartbeat and a report of a rank all name the same life of the worker. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/hardware/wire.h"

static uint64_t caller_of(struct rpc_call *call)
{
    return rpc_call_envelope(call)->client;
}

/* Every call shows that its worker is alive: a busy node sends its heartbeats late while its ranks
 * still call, and after a restart of the coordinator Hello comes first, over a slow network long
 * before a heartbeat. */
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

/* Disown ranks that a worker still has of epochs that are over, or of jobs that do not exist: a
 * store restored from a backup does not know what was begun since. */
static void disown(struct service *service, uint64_t instance,
                   const Gimbal__HeartbeatRequest *request)
{
    for (size_t i = 0; i < request->n_ranks; i++) {
        const Gimbal__RankState *state = request->ranks[i];
        const struct job *job = jobs_find(service->jobs, state->job);
        if (!job || state->epoch < job->epoch)
            assignments_disown(service->assignments, instance, state->job, state->epoch, job);
    }
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
    disown(service, instance, request);
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
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    if (poll->term == stream_term(stream))
        assignments_taken(service->assignments, instance, poll->revision);
    rpc_call_reply_stream(call, stream, assignments_parked(parked, instance));
}

const struct service_handler worker_handlers[] = {
    {COORDINATOR_HELLO, rpc_hello},
    {COORDINATOR_REPORT_HARDWARE, report_hardware},
    {COORDINATOR_HEARTBEAT, heartbeat},
    {COORDINATOR_WATCH_ASSIGNMENTS, watch_assignments},
    {0, NULL},
};
