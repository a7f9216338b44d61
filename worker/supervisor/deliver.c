/* deliver.c - gets the messages of executors, and their ends, to the coordinator.
 *
 * Ready, Paused, Staged and Stopped are sent while the worker is registered, until they are
 * accepted. Staged is sent even after its executor is gone: a checkpoint on disk is worth most just
 * then, so Stopped waits for it. A message that is refused as stale may have crossed a new term,
 * and is sent once more; refused twice in a term it belongs to an epoch that is over, and so does
 * its executor. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void forget(struct supervisor *supervisor, size_t index)
{
    rank_finish(&supervisor->ranks[index]);
    supervisor->rank_count--;
    memmove(&supervisor->ranks[index], &supervisor->ranks[index + 1],
            (supervisor->rank_count - index) * sizeof *supervisor->ranks);
}

/* The rank has ended, its report was accepted, and no state of it is held. */
static bool is_done(const struct rank *rank)
{
    return rank->stopped == DELIVERY_DONE && !rank_has_executor(rank) && !rank->leaves;
}

/* Forget the oldest rank that is done, if there are too many. */
static void prune(struct supervisor *supervisor)
{
    size_t ended = 0, oldest = 0;
    for (size_t i = supervisor->rank_count; i-- > 0;) {
        if (is_done(&supervisor->ranks[i])) {
            ended++;
            oldest = i;
        }
    }
    if (ended > SUPERVISOR_ENDED_MAX)
        forget(supervisor, oldest);
}

/* A coordinator that remembers its jobs does not assign again what has ended. One that does not
 * remember starts counting afresh, and may mean another job by the same name. */
void ranks_forget_taken(struct supervisor *supervisor)
{
    for (size_t i = supervisor->rank_count; i-- > 0;)
        if (is_done(&supervisor->ranks[i]))
            forget(supervisor, i);
}

void ranks_deliver(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    if (supervisor->link.state != LINK_UP)
        return;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->ready == DELIVERY_DUE) {
            rank->ready = DELIVERY_SENT;
            rank->sent_in = supervisor->link.term;
            act_on_rank(actions, SUPERVISOR_READY, rank);
        }
        if (rank->paused == DELIVERY_DUE) {
            rank->paused = DELIVERY_SENT;
            rank->sent_in = supervisor->link.term;
            act_on_rank(actions, SUPERVISOR_PAUSED, rank);
        }
        if (rank->staged == DELIVERY_DUE) {
            rank->staged = DELIVERY_SENT;
            rank->sent_in = supervisor->link.term;
            act_on_rank(actions, SUPERVISOR_STAGED, rank);
        }
        /* Calls may overtake each other, so Stopped waits until these are answered. */
        if (rank->stopped == DELIVERY_DUE && rank->ready != DELIVERY_SENT &&
            rank->staged != DELIVERY_SENT) {
            rank->stopped = DELIVERY_SENT;
            rank->sent_in = supervisor->link.term;
            act_on_rank(actions, SUPERVISOR_STOPPED, rank);
        }
    }
}

void ranks_unsend(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->ready == DELIVERY_SENT)
            rank->ready = rank->state == RANK_ENDED ? DELIVERY_DONE : DELIVERY_DUE;
        if (rank->paused == DELIVERY_SENT)
            rank->paused = rank->state == RANK_ENDED ? DELIVERY_DONE : DELIVERY_DUE;
        rank->paused_newer = false;
        if (rank->staged == DELIVERY_SENT)
            rank->staged = DELIVERY_DUE;
        if (rank->stopped == DELIVERY_SENT)
            rank->stopped = DELIVERY_DUE;
    }
}

bool ranks_all_reported(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].stopped == DELIVERY_DUE ||
            supervisor->ranks[i].stopped == DELIVERY_SENT)
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

/* Handle the answer to a message of a rank; returns the message's new state. */
static enum delivery take_answer(struct supervisor *supervisor, struct rank *rank,
                                 enum rpc_status status, const char *text, uint64_t now_ms,
                                 struct supervisor_actions *actions)
{
    if (link_will_pass(status)) {
        link_lose(supervisor, status, text, now_ms, actions);
        return DELIVERY_DUE;
    }
    if (status == RPC_FAILED_PRECONDITION &&
        !refused_again(supervisor, rank, rank->sent_in, text, now_ms, actions))
        return DELIVERY_DUE;
    if (status != RPC_OK)
        stop_refused(rank, text, now_ms, actions);
    return DELIVERY_DONE;
}

void supervisor_ready_answered(struct supervisor *supervisor, uint64_t id, enum rpc_status status,
                               const char *text, uint64_t now_ms,
                               struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->ready != DELIVERY_SENT)
        return;
    rank->ready = DELIVERY_DONE;
    rank->ready = take_answer(supervisor, rank, status, text, now_ms, actions);
    if (rank->state == RANK_ENDED)
        rank->ready = DELIVERY_DONE;
    ranks_deliver(supervisor, actions);
}

void supervisor_paused_answered(struct supervisor *supervisor, uint64_t id, enum rpc_status status,
                                const char *text, uint64_t now_ms,
                                struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->paused != DELIVERY_SENT)
        return;
    bool newer = rank->paused_newer;
    rank->paused = DELIVERY_DONE;
    rank->paused_newer = false;
    rank->paused = take_answer(supervisor, rank, status, text, now_ms, actions);
    if (newer)
        rank->paused = DELIVERY_DUE;
    if (rank->state == RANK_ENDED)
        rank->paused = DELIVERY_DONE;
    ranks_deliver(supervisor, actions);
}

void supervisor_executor_staged(struct supervisor *supervisor, uint64_t id,
                                Gimbal__StagedRequest *staged, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->staged == DELIVERY_DUE || rank->staged == DELIVERY_SENT ||
        (rank->said_staged && staged->step <= rank->said_staged->step)) {
        message_free(&staged->base);
        return;
    }
    if (rank->said_staged)
        message_free(&rank->said_staged->base);
    rank->said_staged = staged;
    rank->staged = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}

/* If the executor is gone, Staged is sent again only if the call itself failed. */
void supervisor_staged_answered(struct supervisor *supervisor, uint64_t id, enum rpc_status status,
                                const char *text, uint64_t now_ms,
                                struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->staged != DELIVERY_SENT)
        return;
    rank->staged = DELIVERY_DONE;
    rank->staged = take_answer(supervisor, rank, status, text, now_ms, actions);
    ranks_deliver(supervisor, actions);
    supervisor_settle(supervisor, now_ms, actions);
}

void supervisor_stopped_answered(struct supervisor *supervisor, uint64_t id, enum rpc_status status,
                                 const char *text, uint64_t now_ms,
                                 struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->stopped != DELIVERY_SENT)
        return;
    rank->stopped = DELIVERY_DONE;
    if (link_will_pass(status)) {
        rank->stopped = DELIVERY_DUE;
        link_lose(supervisor, status, text, now_ms, actions);
    } else if (status == RPC_FAILED_PRECONDITION &&
               !refused_again(supervisor, rank, rank->sent_in, text, now_ms, actions)) {
        rank->stopped = DELIVERY_DUE;
    } else if (status != RPC_OK) {
        act_log(actions, LOG_WARN,
                "job %s epoch %" PRIu64 " rank %" PRIu32 ": its end was not taken: %s", rank->job,
                rank->epoch, rank->rank, text);
    }
    ranks_deliver(supervisor, actions);
    prune(supervisor);
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
