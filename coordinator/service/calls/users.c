/* users.c - the calls of users about existing jobs. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINES_STANDARD 1000

static const struct job *find_job(struct rpc_call *call, const struct service *service,
                                  const char *id)
{
    const struct job *job = jobs_find(service->jobs, id);
    if (!job)
        rpc_call_fail(call, RPC_NOT_FOUND, "there is no job '%.64s'", id);
    return job;
}

static void cancel(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__CancelRequest *request = rpc_call_request(call);
    struct error err;
    const struct job *job = find_job(call, service, request->job);
    if (!job)
        return;
    if (service_may_change(call, job, &err) < 0) {
        rpc_call_fail_errno(call, -EACCES, &err);
        return;
    }
    if (request->save && !service_saves(service, job)) {
        rpc_call_fail(call, RPC_INVALID_ARGUMENT,
                      "%s has no checkpoint.dir: it can be cancelled, but not saved", job->id);
        return;
    }
    const char *caller = rpc_call_envelope(call)->caller;
    char *words =
        request->reason[0] ? xasprintf("%s: %s", caller, request->reason) : xstrdup(caller);
    struct job_event event = {.kind = JOB_EVENT_CANCEL, .job = request->job, .words = words};
    event.save = request->save;
    int rc = service_apply(service, &event, &err);
    free(words);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

static void get_job(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__GetJobRequest *request = rpc_call_request(call);
    const struct job *job = find_job(call, service, request->job);
    struct job_details details;
    if (!job)
        return;
    job_details_begin(&details, service, job);
    rpc_call_reply(call, &details.reply.base);
    job_details_finish(&details);
}

static void list_jobs(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__ListJobsRequest *request = rpc_call_request(call);
    Gimbal__ListJobsReply reply = GIMBAL__LIST_JOBS_REPLY__INIT;
    reply.jobs = xcalloc(jobs_count(service->jobs), sizeof(Gimbal__JobStatus *));
    for (size_t i = 0; i < jobs_count(service->jobs); i++) {
        const struct job *job = jobs_at(service->jobs, i);
        if ((!request->all && job_ended(job)) ||
            (request->user[0] && strcmp(request->user, job->user) != 0))
            continue;
        reply.jobs[reply.n_jobs++] = job_to_wire(service, job);
    }
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < reply.n_jobs; i++)
        gimbal__job_status__free_unpacked(reply.jobs[i], NULL);
    free(reply.jobs);
}

/* Pick the lines that the request wants, at most `most`. Returns their number; *last: revision of
 * the last line that was looked at. */
static size_t pick_lines(const Gimbal__GetLogsRequest *request, const struct log_line *from,
                         size_t from_count, size_t most, Gimbal__LogLine *lines, uint64_t *last)
{
    size_t count = 0;
    for (size_t i = 0; i < from_count && count < most; i++) {
        *last = from[i].revision;
        if (request->rank >= 0 && request->rank != from[i].rank)
            continue;
        gimbal__log_line__init(&lines[count]);
        lines[count].job = request->job;
        lines[count].rank = (uint32_t)from[i].rank;
        lines[count].epoch = from[i].epoch;
        lines[count].level = (char *)from[i].level;
        lines[count].unix_us = from[i].time_ms * 1000;
        lines[count].text = from[i].text;
        count++;
    }
    return count;
}

static void get_logs(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__GetLogsRequest *request = rpc_call_request(call);
    if (!find_job(call, service, request->job))
        return;
    const struct job_telemetry *measured = telemetry_find(service->telemetry, request->job);
    const struct log_line *from = NULL;
    struct error err;
    size_t count = 0, most = request->count_max ? request->count_max : LINES_STANDARD;
    int rc = 0;
    if (measured)
        rc = lines_after(measured->lines,
                         request->after ? request->after : lines_first(measured->lines), &from,
                         &count, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    most = most < count ? most : count;
    Gimbal__LogLine *lines = xcalloc(most, sizeof *lines);
    Gimbal__GetLogsReply reply = GIMBAL__GET_LOGS_REPLY__INIT;
    reply.last = request->after;
    reply.n_lines = pick_lines(request, from, count, most, lines, &reply.last);
    reply.lines = xcalloc(reply.n_lines, sizeof(Gimbal__LogLine *));
    for (size_t i = 0; i < reply.n_lines; i++)
        reply.lines[i] = &lines[i];
    rpc_call_reply(call, &reply.base);
    free(reply.lines);
    free(lines);
}

const struct service_handler user_handlers[] = {
    {COORDINATOR_CANCEL, cancel},
    {COORDINATOR_GET_JOB, get_job},
    {COORDINATOR_LIST_JOBS, list_jobs},
    {COORDINATOR_GET_LOGS, get_logs},
    {0, NULL},
};
