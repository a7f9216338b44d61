/* traces.c - when instructions ran: reported by ranks, and told to users who ask. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include <errno.h>

int service_take_trace(struct service *service, struct rpc_call *call,
                       const Gimbal__TraceRecord *record, struct error *err)
{
    const struct job *job;
    int rc = service_find_rank(service, call, record->job, record->epoch, &record->rank, &job, err);
    if (rc < 0)
        return rc;
    if (record->n_begin_ns != record->n_end_ns)
        return error_set(err, -EINVAL, "a trace has %zu begins and %zu ends", record->n_begin_ns,
                         record->n_end_ns);
    const struct trace_record trace = {
        .epoch = job->epoch,
        .step = record->step,
        .rank = record->rank,
        .rank_count = job->rank_count,
        .unix_ns = record->unix_ns,
        .total = record->total,
        .count = record->count,
        .first = record->first,
        .begin_ns = record->begin_ns,
        .end_ns = record->end_ns,
        .here = record->n_begin_ns,
    };
    return telemetry_trace(service->telemetry, job->id, &trace, err);
}

/* Find the rank's part of the newest complete step. */
static int find(const struct service *service, const Gimbal__GetTraceRequest *request,
                const struct trace_step **out, struct error *err)
{
    *out = NULL;
    const struct job_telemetry *measured = telemetry_find(service->telemetry, request->job);
    if (!jobs_find(service->jobs, request->job))
        return error_set(err, -ENOENT, "there is no job '%.64s'", request->job);
    if (!measured || measured->traces.newest.step == 0)
        return error_set(
            err, -ESTALE,
            "no trace of a step of %s has arrived since the coordinator started: ranks send "
            "one now and then",
            request->job);
    const struct trace_step *step = &measured->traces.newest;
    if (request->step > 0 && request->step != step->step)
        return error_set(err, -ERANGE, "step %llu is no longer kept: step %llu is",
                         (unsigned long long)request->step, (unsigned long long)step->step);
    if (request->rank >= step->rank_count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", request->job,
                         request->rank, step->rank_count - 1);
    *out = step;
    return 0;
}

static void get_trace(struct rpc_call *call, void *data)
{
    const Gimbal__GetTraceRequest *request = rpc_call_request(call);
    Gimbal__GetTraceReply reply = GIMBAL__GET_TRACE_REPLY__INIT;
    const struct trace_step *step;
    struct error err;
    int rc = find(data, request, &step, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct trace *trace = &step->ranks[request->rank];
    reply.epoch = step->epoch;
    reply.step = step->step;
    reply.rank_count = (uint32_t)step->rank_count;
    reply.unix_ns = trace->unix_ns;
    reply.total = trace->total;
    reply.n_begin_ns = reply.n_end_ns = trace->count;
    reply.begin_ns = trace->begin_ns;
    reply.end_ns = trace->end_ns;
    rpc_call_reply(call, &reply.base);
}

const struct service_handler trace_handlers[] = {
    {COORDINATOR_GET_TRACE, get_trace},
    {0, NULL},
};
