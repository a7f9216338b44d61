/* test_watch.c - a watch hands over every record once and in order, or says why not. */
#include "common/base/random.h"
#include "common/rpc/records.h"
#include "common/rpc/streams.h"
#include "tests/common/rpc/fixture.h"

#include <string.h>

/* What the watcher has read: records are the numbers 1, 2, 3 ... */
struct reader {
    struct rpc_watch *watch;
    size_t count;
    bool rests;
    enum rpc_status status;
    size_t stop_at; /* stop the watch in its callback at this count; 0: never */
};

static void read_records(void *data, const struct rpc_watch_event *event)
{
    struct reader *reader = data;
    if (event->status != RPC_OK) {
        ck_assert_uint_eq(event->count, 0);
        ck_assert_uint_gt(strlen(event->text), 0);
        reader->status = event->status;
        reader->rests = true;
        return;
    }
    for (size_t i = 0; i < event->count; i++) {
        uint64_t number;
        ck_assert_uint_ge(event->records[i]->data.len, sizeof number);
        memcpy(&number, event->records[i]->data.data, sizeof number);
        ck_assert_uint_eq(number, ++reader->count);
    }
    if (reader->stop_at && reader->count >= reader->stop_at) {
        rpc_watch_stop(reader->watch);
        reader->watch = NULL;
    }
}

static void watch_events(struct rpc_call *call, void *data)
{
    rpc_call_reply_stream(call, *(struct stream **)data, "events");
}

static void append(struct house *house, struct stream *stream, size_t size)
{
    static uint64_t record[128];
    record[0] = stream_revision(stream) + 1;
    ck_assert_uint_le(size, sizeof record);
    stream_append(stream, record, size);
    if (house->server)
        rpc_server_wake(house->server, "events");
}

START_TEST(every_record_is_read_once_and_in_order)
{
    enum { COUNT = 500 };
    struct house house;
    struct reader reader = {0};
    struct stream *stream = stream_create(TERM, COUNT);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    struct rpc_client *client = house_client(&house);
    reader.watch = rpc_watch_start(client, COORDINATOR_WATCH_EVENTS, "", 0, read_records, &reader);
    for (uint64_t i = 0; i < COUNT; i++) {
        append(&house, stream, 8 + random_below(1, 0, i, 1000));
        rpc_server_poll(house.server, 0);
        rpc_client_poll(client, 0);
    }
    house_pump_count(&house, &reader.count, COUNT);
    ck_assert(!reader.rests);
    rpc_watch_stop(reader.watch);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_watch_goes_on_after_an_outage_without_loss_or_repetition)
{
    struct house house;
    struct reader reader = {0};
    struct stream *stream = stream_create(TERM, 100);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    reader.watch = rpc_watch_start(house_client(&house), COORDINATOR_WATCH_EVENTS, "", 0,
                                   read_records, &reader);
    for (size_t round = 1; round <= 3; round++) {
        append(&house, stream, 8);
        house_pump_count(&house, &reader.count, 2 * round - 1);
        house_pump_held(&house, 1);
        house_stop(&house);
        append(&house, stream, 8);
        house_restart(&house, NULL);
        rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
        house_pump_count(&house, &reader.count, 2 * round);
    }
    ck_assert(!reader.rests);
    rpc_watch_stop(reader.watch);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_watch_that_fell_behind_rests_until_it_is_told_where_to_go_on)
{
    struct house house;
    struct reader reader = {0};
    struct stream *stream = stream_create(TERM, 3);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    struct rpc_client *client = house_client(&house);
    for (int i = 0; i < 10; i++)
        append(&house, stream, 8);
    reader.watch = rpc_watch_start(client, COORDINATOR_WATCH_EVENTS, "", 0, read_records, &reader);
    house_pump(&house, &reader.rests);
    ck_assert_int_eq(reader.status, RPC_OUT_OF_RANGE);
    ck_assert_uint_eq(reader.count, 0);
    /* The snapshot said: all up to 8. */
    reader.count = 8;
    reader.rests = false;
    rpc_watch_resume(reader.watch, 8);
    house_pump_count(&house, &reader.count, 10);
    ck_assert(!reader.rests);
    rpc_watch_stop(reader.watch);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_new_term_is_told_and_followed_after_hello)
{
    struct house house;
    struct reader reader = {0};
    struct outcome outcome = {0};
    struct rpc_server_options options = house_options();
    struct stream *stream = stream_create(TERM, 8);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    struct rpc_client *client = house_client(&house);
    append(&house, stream, 8);
    reader.watch = rpc_watch_start(client, COORDINATOR_WATCH_EVENTS, "", 0, read_records, &reader);
    house_pump_count(&house, &reader.count, 1);

    house_stop(&house);
    stream_destroy(stream);
    stream = stream_create(TERM + 1, 8);
    options.term++;
    house_restart(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    house_pump(&house, &reader.rests);
    ck_assert_int_eq(reader.status, RPC_FAILED_PRECONDITION);

    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_call(&house, client, COORDINATOR_HELLO, &hello, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
    reader.count = 0;
    rpc_watch_resume(reader.watch, 0);
    append(&house, stream, 8);
    append(&house, stream, 8);
    house_pump_count(&house, &reader.count, 2);
    rpc_watch_stop(reader.watch);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_watch_may_be_stopped_by_its_own_callback)
{
    struct house house;
    struct reader reader = {.stop_at = 2};
    struct stream *stream = stream_create(TERM, 8);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, &stream);
    struct rpc_client *client = house_client(&house);
    append(&house, stream, 8);
    append(&house, stream, 8);
    reader.watch = rpc_watch_start(client, COORDINATOR_WATCH_EVENTS, "", 0, read_records, &reader);
    house_pump_count(&house, &reader.count, 2);
    ck_assert_ptr_null(reader.watch);
    ck_assert_uint_eq(rpc_server_held_count(house.server), 0);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

/* A server that gives records twice, or leaves one out, is not believed. */
static void skip_a_record(struct rpc_call *call, void *data)
{
    (void)data;
    Gimbal__StreamRecord record = GIMBAL__STREAM_RECORD__INIT, *records[] = {&record};
    Gimbal__StreamBatch batch = GIMBAL__STREAM_BATCH__INIT;
    record.revision = 2;
    batch.term = TERM;
    batch.records = records;
    batch.n_records = 1;
    rpc_call_reply(call, &batch.base);
}

START_TEST(a_gap_in_the_stream_is_data_loss)
{
    struct house house;
    struct reader reader = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, skip_a_record, NULL);
    reader.watch = rpc_watch_start(house_client(&house), COORDINATOR_WATCH_EVENTS, "", 0,
                                   read_records, &reader);
    house_pump(&house, &reader.rests);
    ck_assert_int_eq(reader.status, RPC_DATA_LOSS);
    rpc_watch_stop(reader.watch);
    house_close(&house);
}
END_TEST

SUITE(rpc_watch)
{
    const TTest *const tests[] = {
        every_record_is_read_once_and_in_order,
        a_watch_goes_on_after_an_outage_without_loss_or_repetition,
        a_watch_that_fell_behind_rests_until_it_is_told_where_to_go_on,
        a_new_term_is_told_and_followed_after_hello,
        a_watch_may_be_stopped_by_its_own_callback,
        a_gap_in_the_stream_is_data_loss,
    };
    return house_run("rpc watch", tests, sizeof tests / sizeof *tests);
}
