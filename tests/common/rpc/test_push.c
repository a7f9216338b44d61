/* test_push.c - records arrive once and in order, whatever happens to the server. */
#include "common/rpc/records.h"
#include "common/rpc/streams.h"
#include "proto/envelope.pb-c.h"
#include "tests/common/rpc/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The receiving side: records are the numbers 1, 2, 3 ... */
struct taker {
    struct inboxes *inboxes;
    size_t batches;
    size_t count;
    uint64_t last;
    size_t drop_replies; /* keep this many calls without an answer after taking their records */
    struct rpc_call *dropped;
    enum rpc_status refuse;
};

static void push_telemetry(struct rpc_call *call, void *data)
{
    struct taker *taker = data;
    const Gimbal__PushBatch *batch = rpc_call_request(call);
    struct inbox *inbox =
        inboxes_get(taker->inboxes, rpc_call_envelope(call)->client, batch->stream);
    struct error err;
    size_t skip;
    if (taker->refuse) {
        rpc_call_fail(call, taker->refuse, "not these");
        return;
    }
    ck_assert_int_eq(inbox_accept(inbox, batch->first_sequence, batch->n_records, &skip, &err), 0);
    taker->batches++;
    for (size_t i = skip; i < batch->n_records; i++) {
        uint64_t number;
        memcpy(&number, batch->records[i].data, sizeof number);
        ck_assert_uint_gt(number, taker->last);
        taker->last = number;
        taker->count++;
    }
    if (taker->drop_replies > 0) {
        taker->drop_replies--;
        taker->dropped = call;
        return;
    }
    Gimbal__PushAck ack = GIMBAL__PUSH_ACK__INIT;
    ack.acknowledged = inbox->acknowledged;
    rpc_call_reply(call, &ack.base);
}

static void taker_open(struct taker *taker)
{
    *taker = (struct taker){.inboxes = inboxes_create(16)};
}

static void append(struct rpc_push *push, uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++)
        ck_assert_int_eq(rpc_push_append(push, &number, sizeof number, NULL), 0);
}

static void pump_until_acknowledged(struct house *house, const struct rpc_push *push)
{
    while (rpc_push_waiting(push) > 0)
        house_pump_once(house);
}

/* A push of telemetry to a server that keeps what it takes. */
static struct rpc_push *open_push(struct house *house, struct taker *taker, uint32_t deadline_ms)
{
    house_open(house, NULL);
    taker_open(taker);
    rpc_server_handle(house->server, COORDINATOR_PUSH_TELEMETRY, push_telemetry, taker);
    return rpc_push_start(house_client(house), COORDINATOR_PUSH_TELEMETRY, "j-1", deadline_ms);
}

START_TEST(records_arrive_in_few_batches_once_and_in_order)
{
    struct house house;
    struct taker taker;
    struct rpc_push *push = open_push(&house, &taker, 5000);
    append(push, 1, 3000);
    pump_until_acknowledged(&house, push);
    ck_assert_uint_eq(taker.count, 3000);
    ck_assert_uint_le(taker.batches, 5);
    ck_assert_uint_eq(rpc_push_lost(push), 0);
    rpc_push_stop(push);
    house_close(&house);
    inboxes_destroy(taker.inboxes);
}
END_TEST

START_TEST(records_taken_but_not_acknowledged_count_once)
{
    struct house house;
    struct taker taker;
    house_open(&house, NULL);
    taker_open(&taker);
    taker.drop_replies = 1;
    rpc_server_handle(house.server, COORDINATOR_PUSH_TELEMETRY, push_telemetry, &taker);
    struct rpc_push *push =
        rpc_push_start(house_client(&house), COORDINATOR_PUSH_TELEMETRY, "j-1", 100);
    ck_assert(rpc_push_settled(push, rpc_push_newest(push)));
    append(push, 1, 5);
    house_pump_count(&house, &taker.batches, 1);
    /* The server dies with the acknowledgement unsent, and comes back. */
    house_stop(&house);
    ck_assert_uint_eq(rpc_push_newest(push), 5);
    ck_assert(!rpc_push_settled(push, 1));
    house_restart(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_PUSH_TELEMETRY, push_telemetry, &taker);
    append(push, 6, 9);
    pump_until_acknowledged(&house, push);
    ck_assert(rpc_push_settled(push, 9));
    ck_assert_uint_eq(taker.count, 9);
    ck_assert_uint_gt(taker.batches, 1);
    rpc_push_stop(push);
    house_close(&house);
    inboxes_destroy(taker.inboxes);
}
END_TEST

START_TEST(what_was_held_arrives_over_another_client)
{
    struct house house;
    struct taker taker;
    struct rpc_push *push = open_push(&house, &taker, 100);
    append(push, 1, 3);
    pump_until_acknowledged(&house, push);
    rpc_push_hold(push);
    append(push, 4, 6);
    ck_assert_uint_eq(rpc_push_waiting(push), 3);
    rpc_push_resume(push, house_client(&house));
    append(push, 7, 7);
    pump_until_acknowledged(&house, push);
    ck_assert_uint_eq(taker.count, 7);
    ck_assert(rpc_push_settled(push, 7));
    rpc_push_stop(push);
    house_close(&house);
    inboxes_destroy(taker.inboxes);
}
END_TEST

START_TEST(while_nobody_listens_the_newest_records_are_kept)
{
    struct house house;
    struct taker taker;
    struct rpc_push *push = open_push(&house, &taker, 10);
    append(push, 1, 1);
    pump_until_acknowledged(&house, push);
    house_stop(&house);
    append(push, 2, 31);
    ck_assert_uint_eq(rpc_push_waiting(push), 10);
    ck_assert_uint_eq(rpc_push_lost(push), 20);
    house_restart(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_PUSH_TELEMETRY, push_telemetry, &taker);
    pump_until_acknowledged(&house, push);
    ck_assert_uint_eq(taker.last, 31);
    ck_assert_uint_ge(taker.count, 11); /* and what was under way when the server went */
    rpc_push_stop(push);
    house_close(&house);
    inboxes_destroy(taker.inboxes);
}
END_TEST

START_TEST(a_refused_batch_is_counted_and_does_not_stop_the_next)
{
    struct house house;
    struct taker taker;
    house_open(&house, NULL);
    taker_open(&taker);
    taker.refuse = RPC_INVALID_ARGUMENT;
    rpc_server_handle(house.server, COORDINATOR_PUSH_TELEMETRY, push_telemetry, &taker);
    struct rpc_push *push =
        rpc_push_start(house_client(&house), COORDINATOR_PUSH_TELEMETRY, "j-1", 100);
    append(push, 1, 1);
    pump_until_acknowledged(&house, push);
    ck_assert_uint_eq(rpc_push_lost(push), 1);
    taker.refuse = RPC_OK;
    append(push, 2, 2);
    pump_until_acknowledged(&house, push);
    ck_assert_uint_eq(taker.last, 2);
    rpc_push_stop(push);
    house_close(&house);
    inboxes_destroy(taker.inboxes);
}
END_TEST

START_TEST(a_record_larger_than_a_batch_is_refused)
{
    struct house house;
    struct error err;
    house_open(&house, NULL);
    struct rpc_push *push =
        rpc_push_start(house_client(&house), COORDINATOR_PUSH_TELEMETRY, "j-1", 100);
    void *bytes = calloc(1, 1 << 20);
    ck_assert_int_eq(rpc_push_append(push, bytes, 1 << 20, &err), -EMSGSIZE);
    ck_assert_uint_eq(rpc_push_waiting(push), 0);
    free(bytes);
    rpc_push_stop(push);
    house_close(&house);
}
END_TEST

SUITE(rpc_push)
{
    const TTest *const tests[] = {
        records_arrive_in_few_batches_once_and_in_order,
        records_taken_but_not_acknowledged_count_once,
        what_was_held_arrives_over_another_client,
        while_nobody_listens_the_newest_records_are_kept,
        a_refused_batch_is_counted_and_does_not_stop_the_next,
        a_record_larger_than_a_batch_is_refused,
    };
    return house_run("rpc push", tests, sizeof tests / sizeof *tests);
}
