/* calls.c - the worker's calls, its watch of assignments and its push of telemetry, over one
 * client.
 *
 * Of each rank Ready, Paused, Staged and Stopped are reported. Stopped is the last that is heard of
 * it: for a rank that has finished all its steps, it is sent after everything that was measured
 * until then has been delivered. */
#include "worker/daemon/internal.h"
#include "worker/node/mark.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/rpc/coordinator_service.h"
#include "worker/node/credentials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The supervisor repeats registration, so one attempt may be short. */
#define REGISTER_DEADLINE_MS 2000
#define HEARTBEAT_DEADLINE_MS 2000
#define TELEMETRY_KEPT 16384
#define DELIVER_DEADLINE_MS 5000

/* A call about one rank, in progress or waiting. */
struct rank_call {
    struct daemon *daemon;
    struct rank_call *next;
    uint64_t rank;
    enum rank_message message;
    bool waits;      /* not sent yet: */
    uint64_t behind; /* this telemetry record must be delivered first; 0: none */
};

int calls_open(struct daemon *daemon, struct error *err)
{
    struct rpc_client_options options = {
        .service = &service_coordinator,
        .address = daemon->options.coordinator,
        .caller = daemon->options.report->node,
        .fence = daemon->fence,
        .hindrance = daemon->hindrance,
    };
    credentials_apply(daemon->options.credentials, &options);
    int rc = rpc_client_open(&options, &daemon->client, err);
    if (rc < 0)
        return rc;
    if (daemon->push)
        rpc_push_resume(daemon->push, daemon->client);
    else
        daemon->push =
            rpc_push_start(daemon->client, COORDINATOR_PUSH_TELEMETRY, "telemetry", TELEMETRY_KEPT);
    relay_use(daemon->relay, daemon->client);
    return 0;
}

/* Those about ranks, whose callbacks will not run. */
static void drop_calls(struct daemon *daemon)
{
    while (daemon->calls) {
        struct rank_call *call = daemon->calls;
        daemon->calls = call->next;
        free(call);
    }
}

static void log_lost_telemetry(const struct daemon *daemon)
{
    uint64_t lost = rpc_push_lost(daemon->push) + rpc_push_waiting(daemon->push);
    if (lost > 0)
        log_line(LOG_WARN, "telemetry: %" PRIu64 " records were not delivered", lost);
}

/* Nothing that is under way is answered any more. Telemetry waits for another client: what ranks
 * have measured is true whoever they were taken for. */
static void close_client(struct daemon *daemon)
{
    if (!daemon->client)
        return;
    relay_use(daemon->relay, NULL);
    rpc_watch_stop(daemon->watch);
    rpc_push_hold(daemon->push);
    rpc_client_close(daemon->client);
    daemon->client = NULL;
    daemon->watch = NULL;
    drop_calls(daemon);
}

int calls_reopen(struct daemon *daemon, struct error *err)
{
    close_client(daemon);
    return calls_open(daemon, err);
}

void calls_close(struct daemon *daemon)
{
    close_client(daemon);
    if (daemon->push)
        log_lost_telemetry(daemon);
    rpc_push_stop(daemon->push);
    daemon->push = NULL;
}

/* Start a call that is attempted once, until the deadline. */
static void start_call(struct daemon *daemon, unsigned method, const ProtobufCMessage *request,
                       uint32_t deadline_ms, rpc_done_cb done, void *data)
{
    struct rpc_call_options options = {.deadline_ms = deadline_ms, .once = true};
    rpc_client_start(daemon->client, method, request, &options, done, data);
}

/* A new start of the coordinator must be on disk before anything is done for it. */
static int keep_fence(struct daemon *daemon, struct error *err)
{
    struct rpc_fence told = rpc_client_fence(daemon->client);
    if (memcmp(&told, &daemon->fence, sizeof told) == 0)
        return 0;
    int rc = fence_write(daemon->fence_path, &told, err);
    if (rc == 0)
        daemon->fence = told;
    return rc;
}

static void hello_answered(void *data, const struct rpc_result *result)
{
    struct daemon *daemon = data;
    const Gimbal__HelloReply *reply = result->reply;
    enum rpc_status status = result->status;
    const char *text = result->text;
    uint64_t term = reply ? reply->term : 0;
    struct error err;
    if (status == RPC_OK && keep_fence(daemon, &err) < 0) {
        status = RPC_UNAVAILABLE;
        text = err.text;
    }
    supervisor_hello_answered(daemon->supervisor, status, text, term, daemon_now_ms(),
                              &daemon->actions);
    if (status == RPC_OK)
        relay_renew(daemon->relay, term);
}

void calls_hello(struct daemon *daemon)
{
    Gimbal__HelloRequest request = GIMBAL__HELLO_REQUEST__INIT;
    request.release = GIMBAL_RELEASE;
    start_call(daemon, COORDINATOR_HELLO, &request.base, REGISTER_DEADLINE_MS, hello_answered,
               daemon);
}

static void report_answered(void *data, const struct rpc_result *result)
{
    struct daemon *daemon = data;
    const Gimbal__ReportHardwareReply *reply = result->reply;
    if (reply && reply->checkpoints[0])
        mark_leave(reply->checkpoints, daemon->report->node, reply->mark);
    supervisor_report_answered(daemon->supervisor, result->status, result->text,
                               reply ? reply->heartbeat_ms : 0, daemon_now_ms(), &daemon->actions);
}

void calls_report(struct daemon *daemon)
{
    start_call(daemon, COORDINATOR_REPORT_HARDWARE, &daemon->report->base, REGISTER_DEADLINE_MS,
               report_answered, daemon);
}

static void heartbeat_answered(void *data, const struct rpc_result *result)
{
    struct daemon *daemon = data;
    const Gimbal__HeartbeatReply *reply = result->reply;
    supervisor_heartbeat_answered(daemon->supervisor, result->status, result->text,
                                  reply ? reply->revision : 0, daemon_now_ms(), &daemon->actions);
}

void calls_heartbeat(struct daemon *daemon)
{
    size_t count = supervisor_rank_count(daemon->supervisor);
    Gimbal__RankState *states = xcalloc(count, sizeof *states);
    Gimbal__RankState **pointers = xcalloc(count, sizeof(Gimbal__RankState *));
    Gimbal__HeartbeatRequest request = GIMBAL__HEARTBEAT_REQUEST__INIT;
    request.node = daemon->report->node;
    request.ranks = pointers;
    for (size_t i = 0; i < count; i++) {
        const struct rank *rank = supervisor_rank_at(daemon->supervisor, i);
        if (!rank_has_executor(rank))
            continue;
        Gimbal__RankState *state = pointers[request.n_ranks] = &states[request.n_ranks];
        gimbal__rank_state__init(state);
        state->job = rank->job;
        state->epoch = rank->epoch;
        state->rank = rank->rank;
        state->step = rank->step;
        state->position = processes_position(daemon, rank->id);
        request.n_ranks++;
    }
    start_call(daemon, COORDINATOR_HEARTBEAT, &request.base, HEARTBEAT_DEADLINE_MS,
               heartbeat_answered, daemon);
    for (size_t i = 0; i < request.n_ranks; i++)
        message_free((ProtobufCMessage *)states[i].position);
    free(pointers);
    free(states);
}

static void take_record(struct daemon *daemon, const Gimbal__StreamRecord *record)
{
    ProtobufCMessage *message;
    struct error err;
    if (message_unpack(&gimbal__worker_record__descriptor, record->data.data, record->data.len,
                       message_quota(record->data.len), &message, &err) < 0)
        log_line(LOG_ERROR, "revision %" PRIu64 " of the assignments: %s", record->revision,
                 err.text);
    else
        supervisor_record(daemon->supervisor, record->revision, (Gimbal__WorkerRecord *)message,
                          daemon_now_ms(), &daemon->actions);
}

static void watched(void *data, const struct rpc_watch_event *event)
{
    struct daemon *daemon = data;
    if (event->status != RPC_OK)
        supervisor_watch_broken(daemon->supervisor, event->status, event->text, daemon_now_ms(),
                                &daemon->actions);
    for (size_t i = 0; i < event->count; i++)
        take_record(daemon, event->records[i]);
}

void calls_watch(struct daemon *daemon, uint64_t revision)
{
    rpc_watch_stop(daemon->watch);
    daemon->watch = rpc_watch_start(daemon->client, COORDINATOR_WATCH_ASSIGNMENTS,
                                    daemon->report->node, revision, watched, daemon);
}

void calls_push(struct daemon *daemon, const Gimbal__TelemetryRecord *record)
{
    size_t size;
    struct error err;
    void *bytes = message_pack(&record->base, &size);
    if (daemon->push && rpc_push_append(daemon->push, bytes, size, &err) < 0)
        log_line(LOG_WARN, "telemetry: %s", err.text);
    free(bytes);
}

static void drop_call(struct rank_call *call)
{
    struct rank_call **link = &call->daemon->calls;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    free(call);
}

/* Those who follow the job's checkpoints learn from the executor which are listed by now. */
static void take_listed(const struct rank_call *call, const Gimbal__StagedReply *reply)
{
    const struct rank *rank = supervisor_rank(call->daemon->supervisor, call->rank);
    if (reply && rank)
        processes_tell_listed(call->daemon, call->rank, rank->said_staged->step, reply->listed,
                              reply->n_listed);
}

static void rank_answered(void *data, const struct rpc_result *result)
{
    struct rank_call *call = data;
    struct daemon *daemon = call->daemon;
    if (call->message == MESSAGE_STAGED)
        take_listed(call, result->reply);
    supervisor_rank_answered(daemon->supervisor, call->rank, call->message, result->status,
                             result->text, daemon_now_ms(), &daemon->actions);
    drop_call(call);
}

static void send_ready(struct rank_call *call, const struct rank *rank)
{
    Gimbal__ReadyRequest request = *rank->said_ready;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    start_call(call->daemon, COORDINATOR_READY, &request.base, DELIVER_DEADLINE_MS, rank_answered,
               call);
}

static void send_paused(struct rank_call *call, const struct rank *rank)
{
    Gimbal__PausedRequest request = GIMBAL__PAUSED_REQUEST__INIT;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    request.number = rank->paused_number;
    request.step = rank->paused_step;
    start_call(call->daemon, COORDINATOR_PAUSED, &request.base, DELIVER_DEADLINE_MS, rank_answered,
               call);
}

static void send_staged(struct rank_call *call, const struct rank *rank)
{
    Gimbal__StagedRequest request = *rank->said_staged;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    start_call(call->daemon, COORDINATOR_STAGED, &request.base, DELIVER_DEADLINE_MS, rank_answered,
               call);
}

static void send_stopped(struct rank_call *call, const struct rank *rank)
{
    Gimbal__StoppedRequest request = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__LastStep last = rank->last;
    request.job = rank->job;
    request.epoch = rank->epoch;
    request.rank = rank->rank;
    request.cause = rank->cause;
    request.reason = rank->reason;
    request.step = rank->step;
    request.last = rank->finished ? &last : NULL;
    start_call(call->daemon, COORDINATOR_STOPPED, &request.base, DELIVER_DEADLINE_MS, rank_answered,
               call);
}

static void (*const senders[MESSAGES])(struct rank_call *call, const struct rank *rank) = {
    [MESSAGE_READY] = send_ready,
    [MESSAGE_PAUSED] = send_paused,
    [MESSAGE_STAGED] = send_staged,
    [MESSAGE_STOPPED] = send_stopped,
};

/* While a call waited, the connection may have been lost, and the same report sent anew and
 * answered. Then the rank is no longer known. */
static void send_message(struct rank_call *call)
{
    const struct rank *rank = supervisor_rank(call->daemon->supervisor, call->rank);
    if (rank)
        senders[call->message](call, rank);
    else
        drop_call(call);
}

/* Those who follow a job hear nothing more of it after its end, so telemetry goes first. A fault is
 * reported at once, because the other ranks wait to go on. */
void calls_deliver(struct daemon *daemon, uint64_t id, enum rank_message message)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    struct rank_call *call = xcalloc(1, sizeof *call);
    *call = (struct rank_call){
        .daemon = daemon, .next = daemon->calls, .rank = id, .message = message, .waits = true};
    if (message == MESSAGE_STOPPED && rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE)
        call->behind = rpc_push_newest(daemon->push);
    daemon->calls = call;
    calls_release(daemon);
}

void calls_release(struct daemon *daemon)
{
    for (struct rank_call *call = daemon->calls, *next; call; call = next) {
        next = call->next;
        if (!call->waits || !rpc_push_settled(daemon->push, call->behind))
            continue;
        call->waits = false;
        send_message(call);
    }
}
