/* executors.c - what executors report, and what is reported about them once they are gone.
 *
 * The cause of an executor's end is the first of these: what it said itself, if that is DONE; the
 * reason for which it was asked to stop; what it said itself; how its process ended. There is one
 * exception: "cancelled" is replaced if the executor had already failed, by its own words or by a
 * signal. Then others have told the coordinator of the failure first, and it cancelled what was
 * left. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <stdlib.h>

void supervisor_executor_ready(struct supervisor *supervisor, uint64_t id,
                               Gimbal__ReadyRequest *ready, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->state != RANK_RUNNING || rank->ready != DELIVERY_NONE) {
        message_free(&ready->base);
        return;
    }
    rank->said_ready = ready;
    rank->step = ready->step;
    rank->ready = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_stepped(struct supervisor *supervisor, uint64_t id, uint64_t step)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (rank && step > rank->step)
        rank->step = step;
}

void supervisor_executor_stopping(struct supervisor *supervisor, uint64_t id,
                                  Gimbal__StoppedRequest__Cause cause, const char *reason,
                                  uint64_t step, uint64_t now_ms)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || !rank_has_executor(rank))
        return;
    supervisor_executor_stepped(supervisor, id, step);
    /* It may have finished, or failed, before it heard that it was to stop. */
    bool failed = cause_is_fault(cause) && rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED;
    if (!rank->asked || failed || cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        rank_set_cause(rank, cause, reason);
    rank->said = true;
    if (rank->state == RANK_RUNNING || rank->saving) /* what it saved is listed by now */
        rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
    rank->saving = false;
    rank->state = RANK_STOPPING;
}

void supervisor_executor_kept(struct supervisor *supervisor, uint64_t id,
                              Gimbal__StoppedRequest__Cause cause, const char *reason,
                              uint64_t step, uint64_t now_ms, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (rank && rank->state == RANK_STOPPING && rank->saving)
        rank_stop(rank, rank->cause, "it has left its epoch", now_ms, actions);
    if (!rank || (rank->state != RANK_RUNNING && rank->state != RANK_LEAVING))
        return; /* it was asked to stop meanwhile, and will */
    supervisor_executor_stepped(supervisor, id, step);
    if (rank->state == RANK_RUNNING)
        rank_set_cause(rank, cause, reason);
    rank_keep(rank, now_ms, actions);
    ranks_start_waiting(supervisor, actions);
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_faulty(struct supervisor *supervisor, uint64_t id, const char *reason,
                                uint64_t now_ms, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (rank)
        rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, reason, now_ms, actions);
}

/* Whether a dead executor's state is to be held. It is unless somebody wanted the rank gone; not
 * having left its epoch in time, or having stalled in it, does not count as that. */
static bool leaves_state(const struct supervisor *supervisor, const struct rank *rank)
{
    bool stopping = rank->state == RANK_STOPPING;
    bool fault = stopping && rank->said && !rank->asked && cause_is_fault(rank->cause);
    bool stalled = stopping && rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__STALLED;
    return rank->keeps && !supervisor->leaving && (!stopping || fault || stalled);
}

static void set_end(struct rank *rank, const struct executor_end *end)
{
    char *reason = xasprintf("the executor %s%s%s", end->how,
                             end->last_lines[0] ? "; its last lines: " : "", end->last_lines);
    rank_set_cause(rank,
                   end->for_memory ? GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY
                                   : GIMBAL__STOPPED_REQUEST__CAUSE__FAULT,
                   reason);
    free(reason);
}

void supervisor_executor_gone(struct supervisor *supervisor, uint64_t id,
                              const struct executor_end *end, uint64_t now_ms,
                              struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || !rank_has_executor(rank))
        return;
    bool struck = end->struck && rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED;
    if (!rank->left && !rank->said && (!rank->asked || struck))
        set_end(rank, end);
    bool leaves = leaves_state(supervisor, rank);
    rank_end(rank, actions);
    if (leaves)
        rank_leave_state(rank, now_ms);
    ranks_start_waiting(supervisor, actions);
    ranks_deliver(supervisor, actions);
    supervisor_settle(supervisor, now_ms, actions);
}
