/* deliver.c - what executors report, and what is reported about them once they are gone, until the
 * coordinator has accepted it.
 *
 * The cause of an executor's end is the first of these: what it said itself, if that is DONE; the
 * reason for which it was asked to stop; what it said itself; how its process ended. There is one
 * exception: "cancelled" is replaced if the executor had already failed, by its own words or by a
 * signal. Then others have told the coordinator of the failure first, and it cancelled what was
 * left.
 *
 * Ready, Paused, Staged and Stopped are sent while the worker is registered, until they are
 * accepted. Staged is sent even after its executor is gone: a checkpoint on disk is worth most just
 * then, so Stopped waits for it. A message that is refused as stale may have crossed a new term,
 * and is sent once more; refused twice in a term it belongs to an epoch that is over, and so does
 * its executor. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/message/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_under_way(const struct rank *rank, enum rank_message message)
{
    return rank->delivery[message] == DELIVERY_DUE || rank->delivery[message] == DELIVERY_SENT;
}

void supervisor_executor_ready(struct supervisor *supervisor, uint64_t id,
                               Gimbal__ReadyRequest *ready, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->state != RANK_RUNNING || rank->delivery[MESSAGE_READY] != DELIVERY_NONE) {
        message_free(&ready->base);
        return;
    }
    rank->said_ready = ready;
    rank->step = ready->step;
    rank->delivery[MESSAGE_READY] = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_stepped(struct supervisor *supervisor, uint64_t id, uint64_t step)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (rank && step > rank->step)
        rank->step = step;
}

void supervisor_executor_paused(struct supervisor *supervisor, uint64_t id, uint64_t number,
                                uint64_t step, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->state != RANK_RUNNING || number <= rank->paused_number)
        return;
    rank->paused_number = number;
    rank->paused_step = step;
    rank->step = step > rank->step ? step : rank->step;
    /* An older report may be under way, whose answer says nothing about this pause. */
    rank->paused_newer = rank->delivery[MESSAGE_PAUSED] == DELIVERY_SENT;
    if (!rank->paused_newer)
        rank->delivery[MESSAGE_PAUSED] = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_staged(struct supervisor *supervisor, uint64_t id,
                                Gimbal__StagedRequest *staged, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    const Gimbal__StagedRequest *before = rank ? rank->said_staged : NULL;
    bool again = before && before->failure[0] && staged->step == before->step;
    if (!rank || is_under_way(rank, MESSAGE_STAGED) ||
        (before && staged->step <= before->step && !again)) {
        message_free(&staged->base);
        return;
    }
    if (rank->said_staged)
        message_free(&rank->said_staged->base);
    rank->said_staged = staged;
    rank->delivery[MESSAGE_STAGED] = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}

static void rank_set_said(struct rank *rank, const Gimbal__StoppedRequest *said)
{
    rank_set_cause(rank, said->cause, said->reason);
    rank->finished = said->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE && said->last;
    if (rank->finished)
        rank->last = *said->last;
}

/* It goes; its process should be gone soon. */
static void executor_goes(struct rank *rank, const Gimbal__StoppedRequest *said, uint64_t now_ms)
{
    /* It may have finished, or failed, before it heard that it was to stop. */
    bool failed =
        cause_is_fault(said->cause) && rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED;
    if (!rank->asked || failed || said->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        rank_set_said(rank, said);
    rank->said = true;
    if (rank->state == RANK_RUNNING || rank->saving) /* what it saved is listed by now */
        rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
    rank->saving = false;
    rank->state = RANK_STOPPING;
}

/* It stays. It may have finished before it heard that it was to leave. */
static void executor_stays(struct supervisor *supervisor, struct rank *rank,
                           const Gimbal__StoppedRequest *said, uint64_t now_ms,
                           struct supervisor_actions *actions)
{
    if (rank->state == RANK_STOPPING && rank->saving)
        rank_stop(rank, rank->cause, "it has left its epoch", now_ms, actions);
    if (rank->state != RANK_RUNNING && rank->state != RANK_LEAVING)
        return; /* it was asked to stop meanwhile, and will */
    if (rank->state == RANK_RUNNING || said->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        rank_set_said(rank, said);
    rank_keep(rank, actions);
    ranks_start_waiting(supervisor, actions);
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_stopped(struct supervisor *supervisor, uint64_t id,
                                 const Gimbal__StoppedRequest *said, uint64_t now_ms,
                                 struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || !rank_has_executor(rank) || rank->state == RANK_KEPT)
        return; /* it has said so already */
    supervisor_executor_stepped(supervisor, id, said->step);
    if (said->keeps)
        executor_stays(supervisor, rank, said, now_ms, actions);
    else
        executor_goes(rank, said, now_ms);
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
    if (!rank->has_left_epoch && !rank->said && (!rank->asked || struck))
        set_end(rank, end);
    bool leaves = leaves_state(supervisor, rank);
    rank_end(rank, actions);
    if (leaves)
        rank_leave_state(rank, now_ms);
    ranks_start_waiting(supervisor, actions);
    ranks_deliver(supervisor, actions);
    supervisor_settle(supervisor, now_ms, actions);
}

static void forget_rank(struct supervisor *supervisor, size_t index)
{
    rank_finish(&supervisor->ranks[index]);
    supervisor->rank_count--;
    memmove(&supervisor->ranks[index], &supervisor->ranks[index + 1],
            (supervisor->rank_count - index) * sizeof *supervisor->ranks);
}

/* The rank has ended, its report was accepted, and no state of it is held. */
static bool is_done(const struct rank *rank)
{
    return rank->delivery[MESSAGE_STOPPED] == DELIVERY_DONE && !rank_has_executor(rank) &&
           !rank->has_left_state;
}

/* Forget the oldest rank that is done, if there are too many. */
static void prune_ranks(struct supervisor *supervisor)
{
    size_t ended = 0, oldest = 0;
    for (size_t i = supervisor->rank_count; i-- > 0;) {
        if (is_done(&supervisor->ranks[i])) {
            ended++;
            oldest = i;
        }
    }
    if (ended > SUPERVISOR_ENDED_MAX)
        forget_rank(supervisor, oldest);
}

/* A coordinator that remembers its jobs does not assign again what has ended. One that does not
 * remember starts counting afresh, and may mean another job by the same name. */
void ranks_forget_taken(struct supervisor *supervisor)
{
    for (size_t i = supervisor->rank_count; i-- > 0;)
        if (is_done(&supervisor->ranks[i]))
            forget_rank(supervisor, i);
}

/* Calls may overtake each other, so Stopped waits until what comes before it is answered. */
static bool is_held(const struct rank *rank, enum rank_message message)
{
    return message == MESSAGE_STOPPED && (rank->delivery[MESSAGE_READY] == DELIVERY_SENT ||
                                          rank->delivery[MESSAGE_STAGED] == DELIVERY_SENT);
}

void ranks_deliver(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    if (supervisor->link.state != LINK_UP)
        return;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        for (enum rank_message message = 0; message < MESSAGES; message++) {
            if (rank->delivery[message] != DELIVERY_DUE || is_held(rank, message))
                continue;
            rank->delivery[message] = DELIVERY_SENT;
            rank->sent_in = supervisor->link.term;
            act_on_rank(actions, SUPERVISOR_DELIVER, rank);
            actions->items[actions->count - 1].message = message;
        }
    }
}

/* Nobody waits for a rank that is over to be ready, or paused. */
static bool is_moot(const struct rank *rank, enum rank_message message)
{
    return rank->state == RANK_ENDED && (message == MESSAGE_READY || message == MESSAGE_PAUSED);
}

void ranks_unsend(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        rank->paused_newer = false;
        for (enum rank_message message = 0; message < MESSAGES; message++)
            if (rank->delivery[message] == DELIVERY_SENT)
                rank->delivery[message] = is_moot(rank, message) ? DELIVERY_DONE : DELIVERY_DUE;
    }
}

bool ranks_all_reported(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (is_under_way(&supervisor->ranks[i], MESSAGE_STOPPED))
            return false;
    return true;
}

/* A message of the rank was refused as stale. Returns whether that is the second time in this term.
 * A refusal does not count while the link is being made, nor for a message sent in an older
 * term. */
static bool refused_again(struct supervisor *supervisor, struct rank *rank, uint64_t sent_in,
                          const char *text, uint64_t now_ms, struct supervisor_actions *actions)
{
    if (supervisor->link.state != LINK_UP || sent_in != supervisor->link.term)
        return false; /* it crossed a new term */
    if (rank->refused_in == supervisor->link.term)
        return true;
    rank->refused_in = supervisor->link.term;
    link_lose(supervisor, RPC_FAILED_PRECONDITION, text, now_ms, actions);
    return false;
}

static void stop_refused(struct rank *rank, const char *text, uint64_t now_ms,
                         struct supervisor_actions *actions)
{
    char *reason = xasprintf("the coordinator refuses it: %s", text);
    if (rank->going && rank->keeps) /* its epoch is over, but its state is worth keeping */
        rank_leave(rank, reason, false, now_ms, actions);
    else
        rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, reason, now_ms, actions);
    free(reason);
}

/* Whether the message has to be sent again: the call failed, or it was refused for the first time
 * in this term. */
static bool has_failed(struct supervisor *supervisor, struct rank *rank, enum rpc_status status,
                       const char *text, uint64_t now_ms, struct supervisor_actions *actions)
{
    if (link_will_pass(status)) {
        link_lose(supervisor, status, text, now_ms, actions);
        return true;
    }
    return status == RPC_FAILED_PRECONDITION &&
           !refused_again(supervisor, rank, rank->sent_in, text, now_ms, actions);
}

/* The message is not taken, and never will be: its epoch is over. */
static void take_refusal(struct rank *rank, enum rank_message message, const char *text,
                         uint64_t now_ms, struct supervisor_actions *actions)
{
    if (message == MESSAGE_STOPPED)
        act_log(actions, LOG_WARN,
                "job %s epoch %" PRIu64 " rank %" PRIu32 ": its end was not taken: %s", rank->job,
                rank->epoch, rank->rank, text);
    else
        stop_refused(rank, text, now_ms, actions);
}

void supervisor_rank_answered(struct supervisor *supervisor, uint64_t id, enum rank_message message,
                              enum rpc_status status, const char *text, uint64_t now_ms,
                              struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->delivery[message] != DELIVERY_SENT)
        return;
    bool newer = message == MESSAGE_PAUSED && rank->paused_newer;
    if (newer)
        rank->paused_newer = false;
    rank->delivery[message] = DELIVERY_DONE;
    bool failed = has_failed(supervisor, rank, status, text, now_ms, actions);
    if (!failed && status != RPC_OK)
        take_refusal(rank, message, text, now_ms, actions);
    if ((failed || newer) && !is_moot(rank, message))
        rank->delivery[message] = DELIVERY_DUE;
    if (message == MESSAGE_STOPPED && rank->delivery[message] == DELIVERY_DONE)
        rank_heard(rank, now_ms);
    ranks_deliver(supervisor, actions);
    if (message == MESSAGE_STOPPED)
        prune_ranks(supervisor);
    if (message == MESSAGE_STOPPED || message == MESSAGE_STAGED)
        supervisor_settle(supervisor, now_ms, actions);
}

void supervisor_rank_failed(struct supervisor *supervisor, uint64_t id, uint64_t term,
                            enum rpc_status status, const char *text, uint64_t now_ms,
                            struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->state != RANK_RUNNING)
        return;
    if (status != RPC_FAILED_PRECONDITION ||
        refused_again(supervisor, rank, term, text, now_ms, actions))
        stop_refused(rank, text, now_ms, actions);
}
