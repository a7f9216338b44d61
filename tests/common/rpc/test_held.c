/* test_held.c - parked calls: woken, due, replaced, reaped; and never in anybody's way. */
#include "common/message/message.h"
#include "common/rpc/records.h"
#include "proto/envelope.pb-c.h"
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/handlers.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static void watch_events(struct rpc_call *call, void *data)
{
    rpc_call_reply_stream(call, data, "events");
}

/* A poll behind (our term, revision). */
static struct rpc_pending *poll_events(struct rpc_client *client, uint64_t revision,
                                       const struct rpc_call_options *options,
                                       struct outcome *outcome)
{
    Gimbal__StreamPoll request = GIMBAL__STREAM_POLL__INIT;
    request.term = TERM;
    request.revision = revision;
    return house_start(client, COORDINATOR_WATCH_EVENTS, &request, options, outcome);
}

static const Gimbal__StreamBatch *batch_of(const struct outcome *outcome)
{
    ck_assert_msg(outcome->status == RPC_OK, "%s", outcome->text);
    return (const Gimbal__StreamBatch *)outcome->reply;
}

START_TEST(a_poll_is_held_until_there_is_a_record)
{
    struct house house;
    struct outcome outcome = {0};
    struct stream *stream = stream_create(TERM, 8);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    poll_events(house_client(&house), 0, NULL, &outcome);
    house_pump_held(&house, 1);
    ck_assert(!outcome.done);

    stream_append(stream, "node-a lost", 11);
    rpc_server_wake(house.server, "another stream");
    ck_assert_uint_eq(rpc_server_held_count(house.server), 1);
    rpc_server_wake(house.server, "events");
    ck_assert_uint_eq(rpc_server_held_count(house.server), 0);
    house_pump(&house, &outcome.done);
    ck_assert_uint_eq(batch_of(&outcome)->n_records, 1);
    ck_assert_uint_eq(batch_of(&outcome)->term, TERM);
    ck_assert_mem_eq(batch_of(&outcome)->records[0]->data.data, "node-a lost", 11);
    outcome_clear(&outcome);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_poll_behind_existing_records_is_answered_at_once)
{
    struct house house;
    struct outcome outcome = {0};
    struct stream *stream = stream_create(TERM, 2);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    struct rpc_client *client = house_client(&house);
    for (int i = 0; i < 3; i++)
        stream_append(stream, &i, sizeof i);
    poll_events(client, 1, NULL, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_uint_eq(batch_of(&outcome)->n_records, 2);
    ck_assert_uint_eq(batch_of(&outcome)->records[0]->revision, 2);
    outcome_clear(&outcome);

    poll_events(client, 0, NULL, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(outcome.text, "read a snapshot"));
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_held_call_is_answered_empty_after_twenty_seconds)
{
    struct house house;
    struct outcome outcome = {0};
    struct stream *stream = stream_create(TERM, 8);
    struct rpc_server_options options = house_options();
    struct rpc_call_options patient = {.deadline_ms = 30000};
    options.clock_cb = house_clock;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    poll_events(house_client(&house), 0, &patient, &outcome);
    house_pump_held(&house, 1);
    ck_assert_int_eq(rpc_server_timeout_ms(house.server), 20000);
    house_now_ms += 19999;
    rpc_server_poll(house.server, 0);
    ck_assert_uint_eq(rpc_server_held_count(house.server), 1);
    house_now_ms += 1;
    house_pump(&house, &outcome.done);
    ck_assert_uint_eq(batch_of(&outcome)->n_records, 0);
    ck_assert_uint_eq(rpc_server_counters(house.server)->held_empty, 1);
    ck_assert_int_eq(rpc_server_timeout_ms(house.server), -1);
    outcome_clear(&outcome);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_less_patient_caller_is_answered_before_its_deadline)
{
    struct house house;
    struct outcome outcome = {0};
    struct stream *stream = stream_create(TERM, 8);
    struct rpc_server_options options = house_options();
    struct rpc_call_options hasty = {.deadline_ms = 8000};
    options.clock_cb = house_clock;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    poll_events(house_client(&house), 0, &hasty, &outcome);
    house_pump_held(&house, 1);
    ck_assert_int_le(rpc_server_timeout_ms(house.server), 6000);
    house_now_ms += 6000;
    house_pump(&house, &outcome.done);
    ck_assert_uint_eq(batch_of(&outcome)->n_records, 0);
    outcome_clear(&outcome);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_newer_poll_takes_the_place_of_the_older)
{
    struct house house;
    struct outcome older = {0}, newer = {0}, other = {0};
    struct stream *stream = stream_create(TERM, 8);
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    struct rpc_client *client = house_client(&house);
    poll_events(house_client(&house), 0, NULL, &other);
    poll_events(client, 0, NULL, &older);
    house_pump_held(&house, 2);
    poll_events(client, 0, NULL, &newer);
    house_pump(&house, &older.done);
    ck_assert_int_eq(older.status, RPC_ABORTED);
    ck_assert(!newer.done && !other.done);
    ck_assert_uint_eq(rpc_server_held_count(house.server), 2);
    ck_assert_uint_eq(rpc_server_counters(house.server)->held_replaced, 1);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

static void note_gone(void *data, uint64_t client)
{
    *(uint64_t *)data = client;
}

START_TEST(the_calls_of_a_closed_connection_are_reaped_and_its_client_named)
{
    struct house house;
    struct outcome outcome = {0}, other = {0};
    uint64_t gone = 0;
    struct stream *stream = stream_create(TERM, 8);
    struct rpc_server_options options = house_options();
    options.gone_cb = note_gone;
    options.data = &gone;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, watch_events, stream);
    struct rpc_client *client = house_client(&house);
    uint64_t id = rpc_client_id(client);
    poll_events(house_client(&house), 0, NULL, &other);
    poll_events(client, 0, NULL, &outcome);
    house_pump_held(&house, 2);
    house_close_client(&house, client);
    house_pump_held(&house, 1);
    while (gone == 0) /* its other connection closes, too */
        house_pump_once(&house);
    ck_assert_uint_eq(gone, id);
    ck_assert(!other.done);
    ck_assert_uint_eq(rpc_server_counters(house.server)->held_reaped, 1);
    house_close(&house);
    stream_destroy(stream);
}
END_TEST

START_TEST(a_held_call_needs_hello_for_its_port)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    poll_events(house_stranger(&house), 0, NULL, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(
        strstr(outcome.text, "the request to follow events comes before the session is open"));
    house_close(&house);
}
END_TEST

/* Ranks wait for a key, each on a lane of its own, for one worker asks for all of its ranks. */
struct meeting {
    struct rpc_server *server;
    uint32_t value;
    bool there;
};

static void rendezvous(struct rpc_call *call, void *data)
{
    struct meeting *meeting = data;
    const Gimbal__RendezvousRequest *request = rpc_call_request(call);
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    bool put = request->put; /* the request goes with the answer */
    if (!put && !meeting->there) {
        rpc_call_park(call, "rendezvous/j-1/1/key", request->epoch);
        return;
    }
    if (put) {
        memcpy(&meeting->value, request->value.data, sizeof meeting->value);
        meeting->there = true;
    } else {
        reply.there = true;
        reply.value.data = (uint8_t *)&meeting->value;
        reply.value.len = sizeof meeting->value;
    }
    rpc_call_reply(call, &reply.base);
    if (put)
        rpc_server_wake(meeting->server, "rendezvous/j-1/1/key");
}

START_TEST(all_who_wait_for_a_key_are_answered_when_it_is_put)
{
    enum { RANKS = 8 };
    struct house house;
    struct outcome outcomes[RANKS] = {0};
    struct meeting meeting = {0};
    uint32_t value = 4711;
    house_open(&house, NULL);
    meeting.server = house.server;
    rpc_server_handle(house.server, COORDINATOR_RENDEZVOUS, rendezvous, &meeting);
    struct rpc_client *workers[] = {house_client(&house), house_client(&house)};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        Gimbal__RendezvousRequest request = GIMBAL__RENDEZVOUS_REQUEST__INIT;
        request.epoch = rank; /* this test's lane */
        request.put = rank == RANKS - 1;
        request.value.data = (uint8_t *)&value;
        request.value.len = sizeof value;
        if (request.put)
            house_pump_held(&house, RANKS - 1);
        house_start(workers[rank % 2], COORDINATOR_RENDEZVOUS, &request, NULL, &outcomes[rank]);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        house_pump(&house, &outcomes[rank].done);
        ck_assert_int_eq(outcomes[rank].status, RPC_OK);
        const Gimbal__RendezvousReply *reply = (const void *)outcomes[rank].reply;
        ck_assert(reply->there == (rank < RANKS - 1));
        if (reply->there)
            ck_assert_mem_eq(reply->value.data, &value, sizeof value);
        outcome_clear(&outcomes[rank]);
    }
    house_close(&house);
}
END_TEST

static void park_on_lane(struct rpc_call *call, void *data)
{
    const Gimbal__StreamPoll *request = rpc_call_request(call);
    (void)data;
    rpc_call_park(call, "crowd", request->revision);
}

START_TEST(hundreds_of_held_calls_keep_no_other_call_waiting)
{
    enum { COUNT = 300 };
    struct house house;
    static struct outcome outcomes[COUNT];
    struct seen seen = {0};
    struct outcome outcome = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, park_on_lane, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    struct rpc_client *client = house_client(&house);
    for (uint64_t i = 0; i < COUNT; i++)
        poll_events(client, i, NULL, &outcomes[i]);
    house_pump_held(&house, COUNT);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

START_TEST(more_held_calls_than_allowed_are_refused)
{
    struct house house;
    struct outcome outcomes[4] = {0};
    struct rpc_server_options options = house_options();
    options.held_count_max = 3;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, park_on_lane, NULL);
    struct rpc_client *client = house_client(&house);
    for (uint64_t i = 0; i < 3; i++)
        poll_events(client, i, NULL, &outcomes[i]);
    house_pump_held(&house, 3);
    poll_events(client, 3, NULL, &outcomes[3]);
    house_pump(&house, &outcomes[3].done);
    ck_assert_int_eq(outcomes[3].status, RPC_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(rpc_server_held_count(house.server), 3);
    house_close(&house);
}
END_TEST

SUITE(rpc_held)
{
    const TTest *const tests[] = {
        a_poll_is_held_until_there_is_a_record,
        a_poll_behind_existing_records_is_answered_at_once,
        a_held_call_is_answered_empty_after_twenty_seconds,
        a_less_patient_caller_is_answered_before_its_deadline,
        a_newer_poll_takes_the_place_of_the_older,
        the_calls_of_a_closed_connection_are_reaped_and_its_client_named,
        a_held_call_needs_hello_for_its_port,
        all_who_wait_for_a_key_are_answered_when_it_is_put,
        hundreds_of_held_calls_keep_no_other_call_waiting,
        more_held_calls_than_allowed_are_refused,
    };
    return house_run("rpc held", tests, sizeof tests / sizeof *tests);
}
