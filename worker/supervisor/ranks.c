/* ranks.c - the executors of this node: from an assignment to a Stopped that was taken.
 *
 *     waiting -> running -> stopping -> ended
 *        '----------'----------------------^
 *     running -> leaving -> kept -> ended, its executor now another rank's; or -> stopping
 *
 * How it begins is in assign.c; how it stops, or leaves its epoch, is here. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <signal.h>
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
    default:
        return "unknown";
    }
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
}

/* Its epoch is over for it, and the cause is set. */
static void leave_epoch(struct rank *rank, struct supervisor_actions *actions, const char *how)
{
    enum log_level level =
        rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT ? LOG_ERROR : LOG_INFO;
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

static void terminate(struct rank *rank, uint64_t now_ms, struct supervisor_actions *actions)
{
    rank->saving = false;
    rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGTERM;
}

/* What has left its epoch has been reported, and only makes room. */
static void stop_kept(struct rank *rank, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    act_log(actions, LOG_INFO, "job %s epoch %" PRIu64 " rank %" PRIu32 ": its state is let go: %s",
            rank->job, rank->epoch, rank->rank, reason);
    rank->state = RANK_STOPPING;
    terminate(rank, now_ms, actions);
}

void ranks_stop(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_set_cause(rank, cause, reason);
        rank_end(rank, actions);
    } else if (rank->state == RANK_KEPT) {
        stop_kept(rank, reason, now_ms, actions);
    } else if (rank->state == RANK_RUNNING || rank->state == RANK_LEAVING) {
        rank_set_cause(rank, cause, reason);
        rank->asked = true;
        rank->state = RANK_STOPPING;
        terminate(rank, now_ms, actions);
    } else if (rank->state == RANK_STOPPING && rank->saving) {
        terminate(rank, now_ms, actions);
    } else if (rank->leaves) {
        rank_let_go(rank);
    }
}

static void kill_now(struct rank *rank, struct supervisor_actions *actions)
{
    rank->kill_at_ms = UINT64_MAX; /* once is enough */
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGKILL;
}

/* What it was told before is overtaken: it does not do that either. */
void ranks_kill(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        ranks_stop(rank, cause, reason, now_ms, actions);
        return;
    }
    if (rank->state != RANK_RUNNING && rank->state != RANK_LEAVING)
        return;
    rank_set_cause(rank, cause, reason);
    rank->asked = true;
    rank->saving = false;
    rank->state = RANK_STOPPING;
    kill_now(rank, actions);
}

/* Before its first step there is nothing to save. */
static bool can_save(const struct rank *rank)
{
    return rank->state == RANK_RUNNING && rank->saves && rank->going;
}

void ranks_stop_saving(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    bool leaving = rank->state == RANK_LEAVING && rank->saving;
    if (rank->state == RANK_STOPPING && rank->saving)
        return;
    if (!leaving && !can_save(rank)) {
        ranks_stop(rank, cause, reason, now_ms, actions);
        return;
    }
    rank_set_cause(rank, cause, reason);
    rank->asked = true;
    rank->state = RANK_STOPPING;
    rank->saving = true;
    rank->kill_at_ms = now_ms + SUPERVISOR_SAVING_MS;
    act_on_rank(actions, SUPERVISOR_SAVE, rank);
}

void ranks_stop_all(struct supervisor *supervisor, cause_t cause, const char *reason,
                    uint64_t now_ms, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (!supervisor->ranks[i].saving)
            ranks_stop(&supervisor->ranks[i], cause, reason, now_ms, actions);
}

static void quiesce(struct rank *rank, bool save, uint64_t now_ms,
                    struct supervisor_actions *actions)
{
    rank->state = RANK_LEAVING;
    rank->saving = save;
    rank->kill_at_ms = now_ms + (save ? SUPERVISOR_SAVING_MS : SUPERVISOR_PATIENCE_MS);
    act_on_rank(actions, SUPERVISOR_QUIESCE, rank);
}

void ranks_leave(struct rank *rank, const char *reason, bool save, uint64_t now_ms,
                 struct supervisor_actions *actions)
{
    if (rank->state == RANK_RUNNING && rank->keeps) {
        rank_set_cause(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason);
        quiesce(rank, save && can_save(rank), now_ms, actions);
    } else if (rank->state == RANK_LEAVING && rank->saving && !save) {
        quiesce(rank, false, now_ms, actions);
    } else if (rank->state == RANK_WAITING || rank->state == RANK_RUNNING) {
        ranks_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
    }
}

void ranks_lose_epoch(struct supervisor *supervisor, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        bool has = rank->state == RANK_RUNNING || rank->state == RANK_KEPT || rank->leaves;
        if (rank->keeps && has)
            ranks_leave(rank, reason, false, now_ms, actions);
        else
            ranks_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, reason, now_ms, actions);
    }
}

void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->leaves && now_ms >= rank->let_go_ms)
            rank_let_go(rank);
        if (!rank_has_executor(rank) || now_ms < rank->kill_at_ms)
            continue;
        if (rank->state == RANK_KEPT) {
            stop_kept(rank, "nobody has asked for it", now_ms, actions);
            continue;
        }
        if (rank->state == RANK_LEAVING && rank->saving) {
            quiesce(rank, false, now_ms, actions);
            continue;
        }
        rank->asked = true; /* one that did not leave its epoch in time is no fault of the job's */
        kill_now(rank, actions);
    }
}

uint64_t ranks_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        const struct rank *rank = &supervisor->ranks[i];
        uint64_t due_ms =
            rank->leaves && rank->let_go_ms < rank->kill_at_ms ? rank->let_go_ms : rank->kill_at_ms;
        next = due_ms < next ? due_ms : next;
    }
    return next;
}

bool ranks_all_gone(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].state != RANK_ENDED)
            return false;
    return true;
}
