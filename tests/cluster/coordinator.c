/* coordinator.c - handlers that say yes and take notes. */
#include "tests/cluster/coordinator.h"

#include "tests/support/port.h"

#include "common/message/message.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/records.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUMP_MS 20

static void *copy(const void *message)
{
    const ProtobufCMessage *original = message;
    ProtobufCMessage *out;
    size_t size;
    void *bytes = message_pack(original, &size);
    ck_assert_int_eq(
        message_unpack(original->descriptor, bytes, size, message_quota(size), &out, NULL), 0);
    free(bytes);
    return out;
}

static void say_hello(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    coordinator->hellos++;
    rpc_hello(call, NULL);
}

/* A lost instance never returns. */
static bool refuse_lost(struct coordinator *coordinator, struct rpc_call *call)
{
    uint64_t client = rpc_call_envelope(call)->client;
    if (client == coordinator->lost_client) {
        rpc_call_fail(call, RPC_FAILED_PRECONDITION, "it was silent for too long");
        return true;
    }
    coordinator->client = client;
    return false;
}

static void take_report(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    if (refuse_lost(coordinator, call))
        return;
    Gimbal__ReportHardwareReply reply = GIMBAL__REPORT_HARDWARE_REPLY__INIT;
    message_free((ProtobufCMessage *)coordinator->report);
    coordinator->report = copy(rpc_call_request(call));
    coordinator->reports++;
    reply.heartbeat_ms = COORDINATOR_HEARTBEAT_MS;
    reply.lease_ms = 5000;
    rpc_call_reply(call, &reply.base);
}

static void take_heartbeat(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    if (refuse_lost(coordinator, call))
        return;
    Gimbal__HeartbeatReply reply = GIMBAL__HEARTBEAT_REPLY__INIT;
    message_free((ProtobufCMessage *)coordinator->heartbeat);
    coordinator->heartbeat = copy(rpc_call_request(call));
    coordinator->heartbeats++;
    reply.revision = stream_revision(coordinator->assignments);
    rpc_call_reply(call, &reply.base);
}

static void watch_assignments(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    rpc_call_reply_stream(call, coordinator->assignments, "node");
}

static void rendezvous(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    const Gimbal__RendezvousRequest *request = rpc_call_request(call);
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    size_t used = strlen(coordinator->put_keys);
    uint64_t call_id = rpc_call_envelope(call)->call_id;
    if (!request->put && call_id != coordinator->last_get) { /* woken, it comes here again */
        coordinator->last_get = call_id;
        coordinator->gets++;
    }
    if (request->put) {
        snprintf(coordinator->put_keys + used, sizeof coordinator->put_keys - used, " %s ",
                 request->key);
    } else if (!coordinator->value[0]) {
        rpc_call_park(call, request->key, 0);
        return;
    } else {
        reply.there = 1;
        reply.value.data = (uint8_t *)coordinator->value;
        reply.value.len = strlen(coordinator->value);
    }
    rpc_call_reply(call, &reply.base);
}

static void take_ready(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    Gimbal__ReadyReply reply = GIMBAL__READY_REPLY__INIT;
    if (coordinator->refuse_ready) {
        rpc_call_fail(call, RPC_FAILED_PRECONDITION, "this epoch is over");
        return;
    }
    ck_assert_uint_lt(coordinator->ready_count, KEPT);
    coordinator->ready[coordinator->ready_count++] = copy(rpc_call_request(call));
    rpc_call_reply(call, &reply.base);
}

static void take_stopped(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    Gimbal__StoppedReply reply = GIMBAL__STOPPED_REPLY__INIT;
    ck_assert_uint_lt(coordinator->stopped_count, KEPT);
    coordinator->stopped[coordinator->stopped_count++] = copy(rpc_call_request(call));
    rpc_call_reply(call, &reply.base);
}

static void take_telemetry(struct rpc_call *call, void *data)
{
    struct coordinator *coordinator = data;
    const Gimbal__PushBatch *batch = rpc_call_request(call);
    Gimbal__PushAck ack = GIMBAL__PUSH_ACK__INIT;
    struct inbox inbox = {0}; /* a new instance counts from 1 again */
    if (coordinator->pushing == rpc_call_envelope(call)->client)
        inbox.acknowledged = coordinator->acknowledged;
    coordinator->pushing = rpc_call_envelope(call)->client;
    size_t skip;
    ck_assert_int_eq(inbox_accept(&inbox, batch->first_sequence, batch->n_records, &skip, NULL), 0);
    for (size_t i = skip; i < batch->n_records && coordinator->telemetry_count < KEPT; i++) {
        ProtobufCMessage *record;
        ck_assert_int_eq(message_unpack(&gimbal__telemetry_record__descriptor,
                                        batch->records[i].data, batch->records[i].len,
                                        message_quota(batch->records[i].len), &record, NULL),
                         0);
        coordinator->telemetry[coordinator->telemetry_count++] = (Gimbal__TelemetryRecord *)record;
    }
    ack.acknowledged = coordinator->acknowledged = inbox.acknowledged;
    rpc_call_reply(call, &ack.base);
}

/* At the address; false when it, or its neighbour for held calls, is taken. */
static bool serve(struct coordinator *coordinator, const char *address)
{
    static const struct {
        enum coordinator_method method;
        rpc_handler_cb handler;
    } handlers[] = {
        {COORDINATOR_HELLO, say_hello},          {COORDINATOR_REPORT_HARDWARE, take_report},
        {COORDINATOR_HEARTBEAT, take_heartbeat}, {COORDINATOR_WATCH_ASSIGNMENTS, watch_assignments},
        {COORDINATOR_RENDEZVOUS, rendezvous},    {COORDINATOR_READY, take_ready},
        {COORDINATOR_STOPPED, take_stopped},     {COORDINATOR_PUSH_TELEMETRY, take_telemetry},
    };
    struct error err;
    struct rpc_server_options options = {.service = &service_coordinator,
                                         .term = ++coordinator->term,
                                         .instance = coordinator->term * 1000,
                                         .release = "0.1.0"};
    ck_assert_msg(rpc_server_create(&options, &coordinator->server, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        rpc_server_handle(coordinator->server, handlers[i].method, handlers[i].handler,
                          coordinator);
    int rc = rpc_server_listen(coordinator->server, RPC_EVERYBODY, address, &err);
    ck_assert_msg(rc == 0 || rc == -EADDRINUSE, "%s", err.text);
    coordinator->assignments = stream_create(coordinator->term, KEPT);
    return rc == 0;
}

void coordinator_stop(struct coordinator *coordinator)
{
    rpc_server_destroy(coordinator->server);
    stream_destroy(coordinator->assignments);
    coordinator->server = NULL;
    coordinator->assignments = NULL;
}

void coordinator_open(struct coordinator *coordinator)
{
    *coordinator = (struct coordinator){0};
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", (unsigned)port_choose(2));
    ck_assert(serve(coordinator, address));
    snprintf(coordinator->address, sizeof coordinator->address, "%s",
             rpc_server_address(coordinator->server, 0));
}

void coordinator_restart(struct coordinator *coordinator)
{
    ck_assert_msg(serve(coordinator, coordinator->address), "%s is taken", coordinator->address);
}

static void free_all(void *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        message_free(((ProtobufCMessage **)messages)[i]);
}

void coordinator_close(struct coordinator *coordinator)
{
    coordinator_stop(coordinator);
    message_free((ProtobufCMessage *)coordinator->report);
    message_free((ProtobufCMessage *)coordinator->heartbeat);
    free_all(coordinator->ready, coordinator->ready_count);
    free_all(coordinator->stopped, coordinator->stopped_count);
    free_all(coordinator->telemetry, coordinator->telemetry_count);
}

void coordinator_pump(struct coordinator *coordinator)
{
    rpc_server_poll(coordinator->server, PUMP_MS);
}

static void append(struct coordinator *coordinator, const Gimbal__WorkerRecord *record)
{
    size_t size;
    void *bytes = message_pack(&record->base, &size);
    stream_append(coordinator->assignments, bytes, size);
    free(bytes);
    rpc_server_wake(coordinator->server, "node");
}

void coordinator_assign(struct coordinator *coordinator, const char *job, uint64_t epoch,
                        uint32_t rank, uint32_t device, const char *text)
{
    Gimbal__Assignment assignment = GIMBAL__ASSIGNMENT__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    assignment.job = (char *)job;
    assignment.epoch = epoch;
    assignment.rank = rank;
    assignment.rank_count = 2;
    assignment.device_index = device;
    assignment.job_yaml = (char *)text;
    assignment.program_hash = 0xfeed;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT;
    record.assignment = &assignment;
    append(coordinator, &record);
}

void coordinator_go(struct coordinator *coordinator, const char *job, uint64_t epoch)
{
    Gimbal__Go go = GIMBAL__GO__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    go.job = (char *)job;
    go.epoch = epoch;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_GO;
    record.go = &go;
    append(coordinator, &record);
}

void coordinator_cancel(struct coordinator *coordinator, const char *job, uint64_t epoch)
{
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    cancel.job = (char *)job;
    cancel.epoch = epoch;
    cancel.reason = (char *)"a person asked for it";
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_CANCEL;
    record.cancel = &cancel;
    append(coordinator, &record);
}

void coordinator_put(struct coordinator *coordinator, const char *value)
{
    snprintf(coordinator->value, sizeof coordinator->value, "%s", value);
    rpc_server_wake(coordinator->server, "other");
}

bool coordinator_logged(const struct coordinator *coordinator, const char *words)
{
    for (size_t i = 0; i < coordinator->telemetry_count; i++)
        if (coordinator->telemetry[i]->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_LOG &&
            strstr(coordinator->telemetry[i]->log->text, words))
            return true;
    return false;
}

uint64_t coordinator_step(const struct coordinator *coordinator)
{
    uint64_t step = 0;
    for (size_t i = 0; i < coordinator->telemetry_count; i++)
        if (coordinator->telemetry[i]->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP &&
            coordinator->telemetry[i]->step->step > step)
            step = coordinator->telemetry[i]->step->step;
    return step;
}
