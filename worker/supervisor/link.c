/* link.c - the coordinator: Hello, report, heartbeats and watch, and all of it again when it is
 * lost.
 *
 *     waiting -> hello -> report -> up (heartbeat, heartbeat, ...)
 *        ^---------'---------'------'   any failure, after a jittered pause
 *
 * A report that is refused as stale may have crossed a new term. Refused a second time in the same
 * term, it means that this instance was taken for lost. A lost instance never returns: its
 * executors are stopped, and the worker comes back as a new one. The exception is that another live
 * process has registered under the same name. Each of the two would replace the other forever, so
 * the one that was there before exits. */
#include "worker/supervisor/internal.h"

#include "common/base/random.h"
#include "common/rpc/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define HEARTBEAT_MS_STANDARD 1000

static void wait_then_hello(struct supervisor *supervisor, uint64_t now_ms)
{
    struct link *link = &supervisor->link;
    double uniform = random_uniform(supervisor->seed, 0, link->draws++);
    link->state = LINK_WAITING;
    link->due_ms = now_ms + rpc_backoff_ms(link->attempt++, uniform);
}

/* Log what is wrong with the coordinator, unless that was the last complaint too. */
static void complain(struct supervisor *supervisor, const char *text,
                     struct supervisor_actions *actions)
{
    char *last = supervisor->link.complaint;
    if (strncmp(last, text, sizeof supervisor->link.complaint - 1) == 0)
        return;
    snprintf(last, sizeof supervisor->link.complaint, "%s", text);
    act_log(actions, LOG_WARN, "%s", text);
}

bool link_will_pass(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_RESOURCE_EXHAUSTED || status == RPC_CANCELLED || status == RPC_ABORTED;
}

static bool is_final(enum rpc_status status)
{
    return status == RPC_INVALID_ARGUMENT || status == RPC_PERMISSION_DENIED ||
           status == RPC_UNAUTHENTICATED || status == RPC_UNIMPLEMENTED;
}

/* The coordinator refuses this worker for good: log it and leave. */
static void give_up(struct supervisor *supervisor, enum rpc_status status, const char *text,
                    uint64_t now_ms, struct supervisor_actions *actions)
{
    bool permission = status == RPC_PERMISSION_DENIED || status == RPC_UNAUTHENTICATED;
    act_log(actions, LOG_ERROR, "the coordinator refuses node '%s': %s", supervisor->node, text);
    wait_then_hello(supervisor, now_ms);
    supervisor_leave(supervisor, permission ? EX_NOPERM : EX_CONFIG, text, now_ms, actions);
}

/* This instance had registered, and a later one has its name now. */
static bool is_replaced(const struct link *link, enum rpc_status status)
{
    return status == RPC_ALREADY_EXISTS && link->registered_in != 0;
}

static void make_way(struct supervisor *supervisor, uint64_t now_ms,
                     struct supervisor_actions *actions)
{
    char text[320];
    snprintf(text, sizeof text,
             "another gimbal-worker named '%s' has taken its place: give one of the two another "
             "--name",
             supervisor->node);
    complain(supervisor, text, actions);
    wait_then_hello(supervisor, now_ms);
    supervisor_leave(supervisor, EX_CONFIG, text, now_ms, actions);
}

void link_begin(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    supervisor->link.state = LINK_HELLO;
    act(actions, SUPERVISOR_HELLO);
}

void link_lose(struct supervisor *supervisor, enum rpc_status status, const char *text,
               uint64_t now_ms, struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (link->state != LINK_UP)
        return; /* it is being made again */
    if (status == RPC_FAILED_PRECONDITION)
        link->attempt = 0; /* it is there, and answers: earlier failures do not count */
    else
        complain(supervisor, text, actions);
    wait_then_hello(supervisor, now_ms);
}

/* Come back as a new instance. */
static void reconnect(struct supervisor *supervisor, const char *text, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    char reason[384];
    snprintf(reason, sizeof reason, "node '%s' was taken for lost: %s", supervisor->node, text);
    act_log(actions, LOG_WARN, "%s; registering anew", reason);
    link->watching = link->heartbeat_sent = false;
    link->watch_term = link->refused_in = link->revision = link->registered_in = 0;
    link->lagged_from = UINT64_MAX;
    act(actions, SUPERVISOR_RECONNECT);
    ranks_unsend(supervisor);
    ranks_lose_epoch(supervisor, reason, now_ms, actions);
    wait_then_hello(supervisor, now_ms);
}

void supervisor_hello_answered(struct supervisor *supervisor, enum rpc_status status,
                               const char *text, uint64_t term, uint64_t now_ms,
                               struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (link->state != LINK_HELLO)
        return;
    if (status == RPC_OK) {
        link->term = term;
        link->state = LINK_REPORT;
        act(actions, SUPERVISOR_REPORT);
    } else if (is_final(status)) {
        give_up(supervisor, status, text, now_ms, actions);
    } else {
        complain(supervisor, text, actions);
        wait_then_hello(supervisor, now_ms);
    }
}

static void watch(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (link->watch_term != link->term)
        link->revision = 0;
    link->watch_term = link->term;
    link->watching = true;
    link->lagged_from = UINT64_MAX;
    act(actions, SUPERVISOR_WATCH)->revision = link->revision;
}

static void registered(struct supervisor *supervisor, uint32_t heartbeat_ms, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    /* a mere repetition, after a refusal that might have come from an ended term, is logged for
     * debugging */
    bool is_news = link->registered_in != link->term || link->complaint[0];
    act_log(actions, is_news ? LOG_INFO : LOG_DEBUG, "registered as '%s' in term %" PRIu64,
            supervisor->node, link->term);
    if (link->registered_in != link->term)
        ranks_forget_taken(supervisor);
    link->state = LINK_UP;
    link->reached_ms = now_ms;
    orphans_found(supervisor, now_ms);
    link->registered_in = link->term;
    link->complaint[0] = '\0';
    link->refused_in = 0;
    link->heartbeat_ms = heartbeat_ms ? heartbeat_ms : HEARTBEAT_MS_STANDARD;
    link->due_ms = now_ms + link->heartbeat_ms;
    if (!link->watching || link->watch_term != link->term)
        watch(supervisor, actions);
    ranks_deliver(supervisor, actions);
}

void supervisor_report_answered(struct supervisor *supervisor, enum rpc_status status,
                                const char *text, uint32_t heartbeat_ms, uint64_t now_ms,
                                struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (link->state != LINK_REPORT)
        return;
    if (status == RPC_OK) {
        registered(supervisor, heartbeat_ms, now_ms, actions);
    } else if (is_final(status)) {
        give_up(supervisor, status, text, now_ms, actions);
    } else if (is_replaced(link, status)) {
        make_way(supervisor, now_ms, actions);
    } else if (status == RPC_FAILED_PRECONDITION && link->refused_in == link->term) {
        reconnect(supervisor, text, now_ms, actions);
    } else {
        if (status == RPC_FAILED_PRECONDITION)
            link->refused_in = link->term;
        else
            complain(supervisor, text, actions);
        wait_then_hello(supervisor, now_ms);
    }
}

/* A long poll may get lost silently. If two heartbeats in a row tell of records that did not
 * arrive, start the watch again. */
static void check_lag(struct supervisor *supervisor, uint64_t revision,
                      struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (revision <= link->revision || !link->watching)
        link->lagged_from = UINT64_MAX;
    else if (link->lagged_from == link->revision)
        watch(supervisor, actions);
    else
        link->lagged_from = link->revision;
}

void supervisor_heartbeat_answered(struct supervisor *supervisor, enum rpc_status status,
                                   const char *text, uint64_t revision, uint64_t now_ms,
                                   struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    link->heartbeat_sent = false;
    if (link->state != LINK_UP || link->heartbeat_term != link->term)
        return; /* answer to a heartbeat of an older registration */
    if (status != RPC_OK) {
        link_lose(supervisor, status, text, now_ms, actions);
        return;
    }
    link->attempt = 0;
    link->reached_ms = now_ms;
    check_lag(supervisor, revision, actions);
}

void supervisor_watch_broken(struct supervisor *supervisor, enum rpc_status status,
                             const char *text, uint64_t now_ms, struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    link->watching = false;
    if (link->state != LINK_UP)
        return; /* it restarts with the link */
    if (status == RPC_OUT_OF_RANGE || status == RPC_DATA_LOSS)
        reconnect(supervisor, text, now_ms, actions);
    else
        link_lose(supervisor, status, text, now_ms, actions);
}

void link_expire(struct supervisor *supervisor, uint64_t now_ms, struct supervisor_actions *actions)
{
    struct link *link = &supervisor->link;
    if (link->state == LINK_WAITING && now_ms >= link->due_ms) {
        link_begin(supervisor, actions);
    } else if (link->state == LINK_UP && now_ms >= link->due_ms) {
        /* Counted from now, not from when it was due: no burst after a pause of this process. */
        link->due_ms = now_ms + link->heartbeat_ms;
        if (link->heartbeat_sent)
            return;
        link->heartbeat_sent = true;
        link->heartbeat_term = link->term;
        act(actions, SUPERVISOR_HEARTBEAT);
    }
}

uint64_t link_next_ms(const struct supervisor *supervisor)
{
    const struct link *link = &supervisor->link;
    return link->state == LINK_WAITING || link->state == LINK_UP ? link->due_ms : UINT64_MAX;
}
