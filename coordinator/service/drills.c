/* drills.c - causes faults on request, if the coordinator was told to allow that: a rank's worker
 * carries them out, and what follows is what would follow from the same fault on any other day. */
#include "coordinator/service/internal.h"

#include <errno.h>

/* The fault's name on the command line; NULL: there is no fault of this number. */
static const char *fault_name(Gimbal__DrillFault fault)
{
    static const char *const names[] = {[GIMBAL__DRILL_FAULT__KILL_EXECUTOR] = "kill-executor",
                                        [GIMBAL__DRILL_FAULT__KILL_WORKER] = "kill-worker",
                                        [GIMBAL__DRILL_FAULT__STOP_EXECUTOR] = "stop"};
    return (size_t)fault < sizeof names / sizeof *names ? names[fault] : NULL;
}

/* Check the request and find its job and rank; a request counts ranks from 1, and 0 means the last.
 * Returns 0 or a negative errno with a message. */
static int check(const struct service *service, const Gimbal__DrillRequest *request,
                 const struct job **job, size_t *rank, struct error *err)
{
    if (!service->options.drills)
        return error_set(
            err, -EACCES,
            "this coordinator does not allow drills: start it with 'drills: true' in its "
            "settings, or with --drills true");
    *job = jobs_find(service->jobs, request->job);
    if (!*job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", request->job);
    if ((*job)->state != JOB_RUNNING)
        return error_set(err, -ESTALE, "%s is %s: a drill is for a job that is RUNNING", (*job)->id,
                         job_state_name((*job)->state));
    size_t count = job_trainers(*job);
    *rank = request->rank > 0 ? request->rank - 1 : count - 1;
    if (*rank >= count)
        return error_set(err, -EINVAL, "%s has no rank %zu, its ranks are 0 to %zu", (*job)->id,
                         *rank, count - 1);
    if (!fault_name(request->fault))
        return error_set(err, -EINVAL, "there is no fault number %d in this release",
                         (int)request->fault);
    return 0;
}

static void drill(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__DrillRequest *request = rpc_call_request(call);
    Gimbal__DrillReply reply = GIMBAL__DRILL_REPLY__INIT;
    const struct job *job = NULL;
    struct error err;
    size_t rank = 0;
    int rc = check(service, request, &job, &rank, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct device_ref *device = &job->ranks[rank].device;
    reply.rank = (uint32_t)rank;
    reply.node = (char *)device->worker;
    reply.unix_ms = service_now_ms(service);
    service_tell(service, "drill", job->id, device->worker, NULL,
                 "%s: %s ordered %s of rank %zu on %s/%u", job->id, rpc_call_envelope(call)->caller,
                 fault_name(request->fault), rank, device->worker, device->index);
    assignments_drill(service->assignments, job, rank, request->fault);
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

const struct service_handler drill_handlers[] = {
    {COORDINATOR_DRILL, drill},
    {0, NULL},
};
