/* ranks.c - the records of this node's ranks, from an assignment to an accepted Stopped.
 *
 *     waiting -> running -> stopping -> ended
 *        '----------'----------------------^
 *     running -> leaving -> kept -> ended, its executor now another rank's; or -> stopping
 *
 * How a rank begins is in records.c. Here it is stopped: at once, after saving, or by leaving its
 * epoch; and killed if it does not stop in time. A second request may ask for less: an executor
 * that is saving is not waited for once it is to stop at once. One that is already stopping is not
 * asked again.
 *
 * Ranks whose coordinator stays away train on for as long as their job allows (elastic.orphan), and
 * then stop. A coordinator that comes back finds them where they are. But one that is gone for
 * good, or on the other side of a network partition, may have given their job to others, and nobody
 * would ever tell them. Ranks whose job has checkpoints stop after a step that is saved, and keep
 * what they hold until there is a coordinator to list the checkpoint. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/message/message.h"

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
    case GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY:
        return "out of memory";
    case GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY:
        return "out of the host's memory";
    case GIMBAL__STOPPED_REQUEST__CAUSE__DATA:
        return "data";
    case GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED:
        return "not saved";
    case GIMBAL__STOPPED_REQUEST__CAUSE__NOT_FINITE:
        return "not finite";
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
    text_tame(rank->reason); /* it may have been cut; a report that is no UTF-8 is refused */
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
    rank->delivery[MESSAGE_STOPPED] = DELIVERY_DUE;
    if (rank->delivery[MESSAGE_READY] == DELIVERY_DUE)
        rank->delivery[MESSAGE_READY] = DELIVERY_DONE;
    if (rank->delivery[MESSAGE_PAUSED] == DELIVERY_DUE)
        rank->delivery[MESSAGE_PAUSED] = DELIVERY_DONE;
}

void rank_end(struct rank *rank, struct supervisor_actions *actions)
{
    if (!rank->has_left_epoch)
        leave_epoch(rank, actions, "ended");
    rank->state = RANK_ENDED;
    rank->kill_at_ms = UINT64_MAX;
}

void rank_keep(struct rank *rank, struct supervisor_actions *actions)
{
    leave_epoch(rank, actions, "left and keeps its state");
    rank->has_left_epoch = true;
    rank->state = RANK_KEPT;
    rank->kill_at_ms = UINT64_MAX; /* see rank_heard */
}

static bool is_heard(const struct rank *rank)
{
    return rank->delivery[MESSAGE_STOPPED] == DELIVERY_DONE;
}

void rank_leave_state(struct rank *rank, uint64_t now_ms)
{
    rank->has_left_state = true;
    rank->let_go_ms = is_heard(rank) ? now_ms + SUPERVISOR_KEEP_MS : UINT64_MAX;
}

void rank_heard(struct rank *rank, uint64_t now_ms)
{
    if (rank->state == RANK_KEPT && rank->kill_at_ms == UINT64_MAX)
        rank->kill_at_ms = now_ms + SUPERVISOR_KEEP_MS;
    if (rank->has_left_state && rank->let_go_ms == UINT64_MAX)
        rank->let_go_ms = now_ms + SUPERVISOR_KEEP_MS;
}

void rank_let_go(struct rank *rank)
{
    rank->has_left_state = false;
}

bool ranks_all_gone(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].state != RANK_ENDED)
            return false;
    return true;
}

static void rank_terminate(struct rank *rank, uint64_t now_ms, struct supervisor_actions *actions)
{
    rank->saving = false;
    rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGTERM;
}

/* A rank that has left its epoch was reported then; stopping it only makes room. */
static void rank_stop_kept(struct rank *rank, const char *reason, uint64_t now_ms,
                           struct supervisor_actions *actions)
{
    act_log(actions, LOG_INFO, "job %s epoch %" PRIu64 " rank %" PRIu32 ": its state is let go: %s",
            rank->job, rank->epoch, rank->rank, reason);
    rank->state = RANK_STOPPING;
    rank_terminate(rank, now_ms, actions);
}

void rank_stop(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
               struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_set_cause(rank, cause, reason);
        rank_end(rank, actions);
    } else if (rank->state == RANK_KEPT) {
        rank_stop_kept(rank, reason, now_ms, actions);
    } else if (rank->state == RANK_RUNNING || rank->state == RANK_LEAVING) {
        rank_set_cause(rank, cause, reason);
        rank->asked = true;
        rank->state = RANK_STOPPING;
        rank_terminate(rank, now_ms, actions);
    } else if (rank->state == RANK_STOPPING && rank->saving) {
        rank_terminate(rank, now_ms, actions);
    } else if (rank->has_left_state) {
        rank_let_go(rank);
    }
}

static void rank_kill_now(struct rank *rank, struct supervisor_actions *actions)
{
    rank->kill_at_ms = UINT64_MAX; /* once is enough */
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGKILL;
}

/* Earlier requests no longer matter: the executor does not react to those either. */
void rank_kill(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
               struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_stop(rank, cause, reason, now_ms, actions);
        return;
    }
    if (rank->state != RANK_RUNNING && rank->state != RANK_LEAVING)
        return;
    rank_set_cause(rank, cause, reason);
    rank->asked = true;
    rank->saving = false;
    rank->state = RANK_STOPPING;
    rank_kill_now(rank, actions);
}

/* Before its first step a rank has nothing to save. */
static bool can_save(const struct rank *rank)
{
    return rank->state == RANK_RUNNING && rank->saves && rank->going;
}

void rank_stop_saving(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    bool leaving = rank->state == RANK_LEAVING && rank->saving;
    if (rank->state == RANK_STOPPING && rank->saving)
        return;
    if (!leaving && !can_save(rank)) {
        rank_stop(rank, cause, reason, now_ms, actions);
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
            rank_stop(&supervisor->ranks[i], cause, reason, now_ms, actions);
}

static uint64_t leaving_ms(const struct rank *rank)
{
    return rank->fetches ? SUPERVISOR_FETCH_MS : SUPERVISOR_PATIENCE_MS;
}

static void rank_quiesce(struct rank *rank, bool save, uint64_t now_ms,
                         struct supervisor_actions *actions)
{
    rank->state = RANK_LEAVING;
    rank->saving = save;
    rank->kill_at_ms = now_ms + (save ? SUPERVISOR_SAVING_MS : leaving_ms(rank));
    act_on_rank(actions, SUPERVISOR_QUIESCE, rank);
}

void rank_leave(struct rank *rank, const char *reason, bool save, uint64_t now_ms,
                struct supervisor_actions *actions)
{
    if (rank->state == RANK_RUNNING && rank->keeps) {
        rank_set_cause(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason);
        rank_quiesce(rank, save && can_save(rank), now_ms, actions);
    } else if (rank->state == RANK_LEAVING && rank->saving && !save) {
        rank_quiesce(rank, false, now_ms, actions);
    } else if (rank->state == RANK_WAITING || rank->state == RANK_RUNNING) {
        rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
    }
}

void ranks_lose_epoch(struct supervisor *supervisor, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        bool has = rank->state == RANK_RUNNING || rank->state == RANK_LEAVING ||
                   rank->state == RANK_KEPT || rank->has_left_state;
        if (rank->keeps && has)
            rank_leave(rank, reason, false, now_ms, actions);
        else
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, reason, now_ms, actions);
    }
}

/* When a rank has been alone for too long; UINT64_MAX: never, or it neither trains nor has a state
 * of which the coordinator does not know. */
static uint64_t orphan_due_ms(const struct supervisor *supervisor, const struct rank *rank)
{
    const struct link *link = &supervisor->link;
    bool trains = rank->state == RANK_RUNNING && rank->going && rank->pause <= rank->resumed;
    bool waits = (rank->state == RANK_KEPT || rank->has_left_state) && !is_heard(rank);
    if (!(trains || waits) || rank->orphan_ms == 0 || link->state == LINK_UP)
        return UINT64_MAX;
    return link->reached_ms + rank->orphan_ms;
}

static void orphans_expire(struct supervisor *supervisor, uint64_t now_ms,
                           struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (now_ms < orphan_due_ms(supervisor, rank))
            continue;
        char *reason = xasprintf("no coordinator was in reach for %.0f s, which is elastic.orphan",
                                 (double)rank->orphan_ms / 1000);
        act_log(actions, LOG_WARN, "job %s rank %u stops: %s", rank->job, rank->rank, reason);
        rank_stop_saving(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
        if (rank->saving)
            rank->kill_at_ms = UINT64_MAX; /* it waits for the coordinator, however long */
        free(reason);
    }
}

void orphans_found(struct supervisor *supervisor, uint64_t now_ms)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].saving && supervisor->ranks[i].kill_at_ms == UINT64_MAX)
            supervisor->ranks[i].kill_at_ms = now_ms + SUPERVISOR_SAVING_MS;
}

static uint64_t orphans_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        uint64_t due = orphan_due_ms(supervisor, &supervisor->ranks[i]);
        next = due < next ? due : next;
    }
    return next;
}

void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions)
{
    orphans_expire(supervisor, now_ms, actions);
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->has_left_state && now_ms >= rank->let_go_ms)
            rank_let_go(rank);
        if (!rank_has_executor(rank) || now_ms < rank->kill_at_ms)
            continue;
        if (rank->state == RANK_KEPT) {
            rank_stop_kept(rank, "nobody has asked for it", now_ms, actions);
            continue;
        }
        if (rank->state == RANK_LEAVING && rank->saving) {
            rank_quiesce(rank, false, now_ms, actions);
            continue;
        }
        rank->asked = true; /* failing to leave its epoch in time is not the job's fault */
        rank_kill_now(rank, actions);
    }
}

uint64_t ranks_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = orphans_next_ms(supervisor);
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        const struct rank *rank = &supervisor->ranks[i];
        uint64_t due_ms = rank->has_left_state && rank->let_go_ms < rank->kill_at_ms
                              ? rank->let_go_ms
                              : rank->kill_at_ms;
        next = due_ms < next ? due_ms : next;
    }
    return next;
}
