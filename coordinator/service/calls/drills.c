/* drills.c - causes faults on request, if the coordinator was told to allow that: a rank's worker
 * carries them out, and what follows is what would follow from the same fault on any other day. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/drill/drill.h"

#include <errno.h>
#include <string.h>

/* Find the rank that is meant: a request counts from 1, and 0 means the last, of its node if it
 * names one. -EINVAL. */
static int find_rank(const struct job *job, const Gimbal__DrillRequest *request, size_t *rank,
                     struct error *err)
{
    size_t count = job_trainers(job);
    if (request->rank > count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", job->id,
                         request->rank - 1, count - 1);
    *rank = request->rank > 0 ? request->rank - 1 : count - 1;
    if (!request->node[0])
        return 0;
    for (size_t i = count; i-- > 0;)
        if (strcmp(job->ranks[i].device.worker, request->node) == 0) {
            *rank = i;
            return 0;
        }
    return error_set(err, -EINVAL, "%s has no rank on node '%.64s'", job->id, request->node);
}

/* Check the request and find its job and rank. Returns 0 or a negative errno with a message. */
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
    const struct drill_fault *fault = drill_fault(request->fault);
    if (!fault)
        return error_set(err, -EINVAL, "there is no fault number %d in this release",
                         (int)request->fault);
    int rc = drill_check_times(fault, request->for_ms, request->delay_ms, err);
    return rc == 0 ? find_rank(*job, request, rank, err) : rc;
}

static void drill(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__DrillRequest *request = rpc_call_request(call);
    Gimbal__DrillReply reply = GIMBAL__DRILL_REPLY__INIT;
    const struct job *job = NULL;
    struct error err;
    char words[128];
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
                 "%s: %s ordered %s of rank %zu on %s/%u%s", job->id,
                 rpc_call_envelope(call)->caller, drill_fault(request->fault)->name, rank,
                 device->worker, device->index, drill_print_times(request, words, sizeof words));
    assignments_drill(service->assignments, job, rank, request);
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

const struct service_handler drill_handlers[] = {
    {COORDINATOR_DRILL, drill},
    {0, NULL},
};
