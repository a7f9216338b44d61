/* ranks.c - the records of this node's ranks, from an assignment to an accepted Stopped.
 *
 *     waiting -> running -> stopping -> ended
 *        '----------'----------------------^
 *     running -> leaving -> kept -> ended, its executor now another rank's; or -> stopping
 *
 * How a rank begins is in assign.c, how it is stopped or leaves its epoch in stops.c. This file has
 * what its end does to the record. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/base/utf8.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>

typedef Gimbal__StoppedRequest__Cause cause_t;

static const char *cause_name(cause_t cause)
{
    switch (cause) {
    case GIMBAL__STOPPED_REQUEST__CAUSE__DONE:
        return "done";
    case GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED:
        return "quiesced";
    case GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED:
        return "cancelled";
    case GIMBAL__STOPPED_REQUEST__CAUSE__FAULT:
        return "fault";
    case GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST:
        return "peer lost";
    case GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED:
        return "checkpoint damaged";
    case GIMBAL__STOPPED_REQUEST__CAUSE__STALLED:
        return "stalled";
    case GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY:
        return "out of memory";
    case GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY:
        return "out of the host's memory";
    case GIMBAL__STOPPED_REQUEST__CAUSE__DATA:
        return "data";
    default:
        return "unknown";
    }
}

bool cause_is_fault(cause_t cause)
{
    return cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY ||
           cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY;
}

void rank_finish(struct rank *rank)
{
    if (rank->assignment)
        message_free(&rank->assignment->base);
    if (rank->said_ready)
        message_free(&rank->said_ready->base);
    if (rank->said_staged)
        message_free(&rank->said_staged->base);
    free(rank->job);
    free(rank->reason);
}

bool rank_has_executor(const struct rank *rank)
{
    return rank->state != RANK_WAITING && rank->state != RANK_ENDED;
}

struct rank *ranks_find(struct supervisor *supervisor, uint64_t id)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].id == id)
            return &supervisor->ranks[i];
    return NULL;
}

const struct rank *supervisor_rank(const struct supervisor *supervisor, uint64_t id)
{
    return ranks_find((struct supervisor *)supervisor, id);
}

size_t supervisor_rank_count(const struct supervisor *supervisor)
{
    return supervisor->rank_count;
}

const struct rank *supervisor_rank_at(const struct supervisor *supervisor, size_t index)
{
    return &supervisor->ranks[index];
}

Gimbal__Assignment *supervisor_take_assignment(struct supervisor *supervisor, uint64_t id)
{
    struct rank *rank = ranks_find(supervisor, id);
    Gimbal__Assignment *assignment = rank->assignment;
    rank->assignment = NULL;
    return assignment;
}

void rank_set_cause(struct rank *rank, cause_t cause, const char *reason)
{
    free(rank->reason);
    rank->cause = cause;
    rank->reason = xstrdup(reason);
    utf8_tame(rank->reason); /* it may have been cut; a report that is no UTF-8 is refused */
}

/* The rank is out of its epoch, for the cause that is set: log it, and report it as stopped. */
static void leave_epoch(struct rank *rank, struct supervisor_actions *actions, const char *how)
{
    enum log_level level = cause_is_fault(rank->cause) ? LOG_ERROR : LOG_INFO;
    act_log(actions, level, "job %s epoch %" PRIu64 " rank %" PRIu32 " %s: %s%s%s", rank->job,
            rank->epoch, rank->rank, how, cause_name(rank->cause), rank->reason[0] ? ": " : "",
            rank->reason);
    if (rank->assignment)
        message_free(&rank->assignment->base);
    rank->assignment = NULL;
    rank->saving = false;
    rank->stopped = DELIVERY_DUE;
    if (rank->ready == DELIVERY_DUE)
        rank->ready = DELIVERY_DONE;
    if (rank->paused == DELIVERY_DUE)
        rank->paused = DELIVERY_DONE;
}

void rank_end(struct rank *rank, struct supervisor_actions *actions)
{
    if (!rank->left)
        leave_epoch(rank, actions, "ended");
    rank->state = RANK_ENDED;
    rank->kill_at_ms = UINT64_MAX;
}

void rank_keep(struct rank *rank, uint64_t now_ms, struct supervisor_actions *actions)
{
    leave_epoch(rank, actions, "left and keeps its state");
    rank->left = true;
    rank->state = RANK_KEPT;
    rank->kill_at_ms = now_ms + SUPERVISOR_KEEP_MS;
}

void rank_leave_state(struct rank *rank, uint64_t now_ms)
{
    rank->leaves = true;
    rank->let_go_ms = now_ms + SUPERVISOR_KEEP_MS;
}

void rank_let_go(struct rank *rank)
{
    rank->leaves = false;
}

bool ranks_all_gone(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].state != RANK_ENDED)
            return false;
    return true;
}
