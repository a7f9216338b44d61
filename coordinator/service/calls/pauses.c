/* pauses.c - the calls by which users pause, resume and move jobs, and by which ranks report that
 * they wait. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

/* -ENOENT, or -EACCES where the job is another user's. */
static int check_user(const struct service *service, const struct rpc_call *call, const char *id,
                      struct error *err)
{
    const struct job *job = jobs_find(service->jobs, id);
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    return service_may_change(call, job, err);
}

/* Apply the event and answer. Only events of users need the right to change the job. */
static void apply(struct rpc_call *call, struct service *service, const struct job_event *event,
                  const ProtobufCMessage *reply)
{
    struct error err;
    bool from_user = event->kind != JOB_EVENT_PAUSED;
    int rc = from_user ? check_user(service, call, event->job, &err) : 0;
    if (rc == 0)
        rc = service_apply(service, event, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    service_turn(service);
    rpc_call_reply(call, reply);
}

/* The caller and the reason it gives, to be freed. */
static char *print_caller(const struct rpc_call *call, const char *reason)
{
    const char *caller = rpc_call_envelope(call)->caller;
    return reason[0] ? xasprintf("%s: %s", caller, reason) : xstrdup(caller);
}

static void hold(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__PauseRequest *request = rpc_call_request(call);
    struct error err;
    int rc = check_user(service, call, request->job, &err);
    if (rc == 0 && request->release &&
        !service_saves(service, jobs_find(service->jobs, request->job)))
        rc =
            error_set(&err, -EINVAL,
                      "%s has no checkpoint.dir: it can be paused, but not release its devices, or "
                      "it would start over",
                      request->job);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__PauseReply reply = GIMBAL__PAUSE_REPLY__INIT;
    char *words = print_caller(call, request->reason);
    struct job_event event = {.kind = JOB_EVENT_HOLD, .job = request->job, .words = words};
    event.release = request->release;
    apply(call, service, &event, &reply.base);
    free(words);
}

static void let_go(struct rpc_call *call, void *data)
{
    const Gimbal__ResumeRequest *request = rpc_call_request(call);
    Gimbal__ResumeReply reply = GIMBAL__RESUME_REPLY__INIT;
    struct job_event event = {.kind = JOB_EVENT_LET_GO, .job = request->job};
    apply(call, data, &event, &reply.base);
}

static void replan(struct rpc_call *call, void *data)
{
    const Gimbal__ReplanRequest *request = rpc_call_request(call);
    Gimbal__ReplanReply reply = GIMBAL__REPLAN_REPLY__INIT;
    char *words = print_caller(call, request->reason);
    struct job_event event = {.kind = JOB_EVENT_REPLAN, .job = request->job, .words = words};
    apply(call, data, &event, &reply.base);
    free(words);
}

static void paused(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__PausedRequest *request = rpc_call_request(call);
    Gimbal__PausedReply reply = GIMBAL__PAUSED_REPLY__INIT;
    const struct job *job;
    struct error err;
    int rc =
        service_find_rank(service, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    struct job_event event = {.kind = JOB_EVENT_PAUSED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .rank = request->rank,
                              .paused = {(uint32_t)request->number, request->step}};
    apply(call, service, &event, &reply.base);
}

const struct service_handler pause_handlers[] = {
    {COORDINATOR_PAUSE, hold},
    {COORDINATOR_RESUME, let_go},
    {COORDINATOR_REPLAN, replan},
    {COORDINATOR_PAUSED, paused},
    {0, NULL},
};
