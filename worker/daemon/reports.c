/* reports.c - the calls that report on a rank: Ready, Paused, Staged and Stopped.
 *
 * Stopped is the last that is heard of a rank. For a rank that has finished all its steps, it is
 * sent after everything that was measured until then has been delivered. */
#include "worker/daemon/internal.h"

#include "common/base/memory.h"
#include "common/rpc/services/coordinator.h"

#include <stdlib.h>

#define DELIVER_DEADLINE_MS 5000

/* The supervisor's function for the answer. */
typedef void rank_answered_cb(struct supervisor *supervisor, uint64_t rank, enum rpc_status status,
                              const char *text, uint64_t now_ms,
                              struct supervisor_actions *actions);

/* A call about one rank, in progress or waiting. */
struct rank_call {
    struct daemon *daemon;
    struct rank_call *next;
    uint64_t rank;
    rank_answered_cb *answered;
    bool waits;      /* Stopped that is not sent yet, */
    uint64_t behind; /* because this telemetry record must be delivered first */
};

static void drop(struct rank_call *call)
{
    struct rank_call **link = &call->daemon->calls;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    free(call);
}

static void rank_answered(void *data, const struct rpc_result *result)
{
    struct rank_call *call = data;
    struct daemon *daemon = call->daemon;
    call->answered(daemon->supervisor, call->rank, result->status, result->text, daemon_now_ms(),
                   &daemon->actions);
    drop(call);
}

static struct rank_call *add_call(struct daemon *daemon, uint64_t rank, rank_answered_cb *answered)
{
    struct rank_call *call = xcalloc(1, sizeof *call);
    *call = (struct rank_call){
        .daemon = daemon, .next = daemon->calls, .rank = rank, .answered = answered};
    daemon->calls = call;
    return call;
}

void reports_ready(struct daemon *daemon, uint64_t id)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    Gimbal__ReadyRequest request = *rank->said_ready;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    calls_start(daemon, COORDINATOR_READY, &request.base, DELIVER_DEADLINE_MS, rank_answered,
                add_call(daemon, id, supervisor_ready_answered));
}

void reports_paused(struct daemon *daemon, uint64_t id)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    Gimbal__PausedRequest request = GIMBAL__PAUSED_REQUEST__INIT;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    request.number = rank->paused_number;
    request.step = rank->paused_step;
    calls_start(daemon, COORDINATOR_PAUSED, &request.base, DELIVER_DEADLINE_MS, rank_answered,
                add_call(daemon, id, supervisor_paused_answered));
}

static void staged_answered(void *data, const struct rpc_result *result)
{
    struct rank_call *call = data;
    const struct rank *rank = supervisor_rank(call->daemon->supervisor, call->rank);
    const Gimbal__StagedReply *reply = result->reply;
    if (reply && rank)
        orders_listed(call->daemon, call->rank, rank->said_staged->step, reply->listed,
                      reply->n_listed);
    rank_answered(call, result);
}

void reports_staged(struct daemon *daemon, uint64_t id)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    Gimbal__StagedRequest request = *rank->said_staged;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    calls_start(daemon, COORDINATOR_STAGED, &request.base, DELIVER_DEADLINE_MS, staged_answered,
                add_call(daemon, id, supervisor_staged_answered));
}

/* While this call waited, the connection may have been lost, and the same report sent anew and
 * answered. Then the rank is no longer known. */
static void send_stopped(struct rank_call *call)
{
    const struct rank *rank = supervisor_rank(call->daemon->supervisor, call->rank);
    if (!rank) {
        drop(call);
        return;
    }
    Gimbal__StoppedRequest request = GIMBAL__STOPPED_REQUEST__INIT;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    request.cause = rank->cause;
    request.reason = rank->reason;
    request.step = rank->step;
    calls_start(call->daemon, COORDINATOR_STOPPED, &request.base, DELIVER_DEADLINE_MS,
                rank_answered, call);
}

/* Those who follow a job hear nothing more of it after its end, so telemetry goes first. A fault is
 * reported at once, because the other ranks wait to go on. */
void reports_stopped(struct daemon *daemon, uint64_t id)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    struct rank_call *call = add_call(daemon, id, supervisor_stopped_answered);
    if (rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        call->behind = rpc_push_newest(daemon->push);
    call->waits = true;
    reports_release(daemon);
}

void reports_release(struct daemon *daemon)
{
    for (struct rank_call *call = daemon->calls, *next; call; call = next) {
        next = call->next;
        if (!call->waits || !rpc_push_settled(daemon->push, call->behind))
            continue;
        call->waits = false;
        send_stopped(call);
    }
}

/* Their callbacks will not run. */
void reports_drop(struct daemon *daemon)
{
    while (daemon->calls) {
        struct rank_call *call = daemon->calls;
        daemon->calls = call->next;
        free(call);
    }
}
