/* test_gone.c - clients whose connections close: who of them is gone, and who is not. */
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/stranger.h"

static void hold(struct rpc_call *call, void *data)
{
    (void)data;
    rpc_call_park(call, "held", 0);
}

/* Who has gone, and how many. */
struct gone {
    size_t count;
    uint64_t last;
};

static void count_gone(void *data, uint64_t client)
{
    struct gone *gone = data;
    gone->count++;
    gone->last = client;
}

static void open_watched(struct house *house, struct gone *gone)
{
    struct rpc_server_options options = house_options();
    options.gone_cb = count_gone;
    options.data = gone;
    house_open(house, &options);
    rpc_server_handle(house->server, COORDINATOR_WATCH_EVENTS, hold, NULL);
}

/* One more connection of this client, on which it has called. */
static void call_by(struct stranger *way, struct house *house, uint64_t client, bool holds)
{
    Gimbal__Envelope envelope = stranger_request(holds ? "WatchEvents" : "Hello");
    uint64_t arrived = rpc_server_counters(house->server)->arrived;
    envelope.client = client;
    stranger_open(way, house, holds);
    stranger_send(way, envelope_encode(&envelope));
    while (rpc_server_counters(house->server)->arrived == arrived)
        rpc_server_poll(house->server, -1);
}

/* By a connection of its own, while an older one of its is still there: it takes the place of what
 * that has asked. */
START_TEST(a_client_that_has_come_back_is_not_gone_with_its_old_connection)
{
    struct house house;
    struct stranger ways[2];
    struct gone gone = {0};
    open_watched(&house, &gone);
    for (int i = 0; i < 2; i++)
        call_by(&ways[i], &house, 99, true);
    ck_assert_uint_eq(rpc_server_held_count(house.server), 1);
    stranger_close(&ways[0]);
    rpc_server_poll(house.server, -1); /* it is told of that */
    ck_assert_uint_eq(gone.count, 0);
    stranger_close(&ways[1]);
    house_pump_held(&house, 0);
    ck_assert_uint_eq(gone.count, 1);
    house_close(&house);
}
END_TEST

START_TEST(a_client_is_gone_with_its_last_connection_whichever_that_is)
{
    struct house house;
    struct stranger ways[2];
    struct gone gone = {0};
    open_watched(&house, &gone);
    for (int i = 0; i < 2; i++)
        call_by(&ways[i], &house, 99, i == 0);
    stranger_close(&ways[0]);
    house_pump_held(&house, 0);
    ck_assert_uint_eq(gone.count, 0);
    stranger_close(&ways[1]);
    while (gone.count == 0)
        rpc_server_poll(house.server, -1);
    ck_assert_uint_eq(gone.last, 99);
    house_close(&house);
}
END_TEST

START_TEST(a_client_that_held_no_call_is_not_watched)
{
    struct house house;
    struct stranger caller, holder;
    struct gone gone = {0};
    open_watched(&house, &gone);
    call_by(&caller, &house, 98, false);
    call_by(&holder, &house, 99, true);
    stranger_close(&caller);
    rpc_server_poll(house.server, -1); /* it is told of that */
    stranger_close(&holder);
    house_pump_held(&house, 0);
    ck_assert_uint_eq(gone.count, 1);
    ck_assert_uint_eq(gone.last, 99);
    house_close(&house);
}
END_TEST

static void answer_at_once(struct rpc_call *call, void *data)
{
    Gimbal__StreamBatch batch = GIMBAL__STREAM_BATCH__INIT;
    (void)data;
    rpc_call_reply(call, &batch.base);
}

/* As a worker that is killed with the first assignment that it reads. */
START_TEST(a_client_whose_held_call_was_answered_at_once_is_watched_too)
{
    struct house house;
    struct stranger way;
    struct gone gone = {0};
    open_watched(&house, &gone);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, answer_at_once, NULL);
    call_by(&way, &house, 99, true);
    stranger_close(&way);
    while (gone.count == 0)
        rpc_server_poll(house.server, -1);
    ck_assert_uint_eq(gone.last, 99);
    house_close(&house);
}
END_TEST

SUITE(rpc_gone)
{
    const TTest *const tests[] = {
        a_client_that_has_come_back_is_not_gone_with_its_old_connection,
        a_client_is_gone_with_its_last_connection_whichever_that_is,
        a_client_that_held_no_call_is_not_watched,
        a_client_whose_held_call_was_answered_at_once_is_watched_too,
    };
    return house_run("rpc gone", tests, sizeof tests / sizeof *tests);
}
