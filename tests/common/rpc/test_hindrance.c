/* test_hindrance.c - clients whose connection is cut or slow for a time. */
#include "common/base/clock.h"
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/handlers.h"

#include <string.h>

#define CUT_MS 400
#define DELAY_MS 150 /* one way */
#define BOTH_MS 300

static struct house house;
static struct seen seen;
static struct rpc_client *client;
static struct outcome outcome;

static void open_house(void)
{
    seen = (struct seen){0};
    outcome = (struct outcome){0};
    house_open(&house, NULL);
    client = house_client(&house);
}

static void hinder(uint32_t delay_ms, uint32_t for_ms)
{
    const struct rpc_hindrance hindrance = {delay_ms, clock_ms() + for_ms};
    rpc_client_hinder(client, &hindrance);
}

/* Make the call; the milliseconds that it took. */
static uint64_t call(uint32_t deadline_ms)
{
    const struct rpc_call_options options = {.deadline_ms = deadline_ms};
    Gimbal__CancelRequest request = cancel_request("j-1");
    uint64_t since_ms = clock_ms();
    house_start(client, COORDINATOR_CANCEL, &request, &options, &outcome);
    house_pump(&house, &outcome.done);
    return clock_ms() - since_ms;
}

START_TEST(nothing_passes_a_cut_connection_until_it_ends)
{
    open_house();
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    hinder(0, CUT_MS);
    ck_assert_uint_ge(call(CUT_MS / 4), CUT_MS / 4);
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(seen.count, 0);
    outcome_clear(&outcome);
    call(10000);
    ck_assert_msg(outcome.status == RPC_OK, "%s", outcome.text);
    ck_assert_uint_eq(seen.count, 1);
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

/* Nobody sees how far it came; it was done all the same. */
START_TEST(an_answer_that_comes_over_a_cut_connection_is_not_heard)
{
    const struct rpc_call_options options = {.deadline_ms = CUT_MS / 2};
    Gimbal__CancelRequest request = cancel_request("j-1");
    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    open_house();
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    house_start(client, COORDINATOR_CANCEL, &request, &options, &outcome);
    house_pump_count(&house, &seen.count, 1);
    hinder(0, 10 * CUT_MS);
    rpc_call_reply(seen.kept[0], &reply.base);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(outcome.text, "did not answer the request"));
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

START_TEST(a_slow_connection_is_late_with_both_the_request_and_the_answer)
{
    open_house();
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    hinder(DELAY_MS, 10000);
    uint64_t took_ms = call(10000);
    ck_assert_int_eq(outcome.status, RPC_OK);
    ck_assert_uint_ge(took_ms, BOTH_MS);
    outcome_clear(&outcome);
    call(DELAY_MS * 3 / 2); /* done, but heard too late */
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    outcome_clear(&outcome);
    hinder(20000, 20000);
    hinder(0, 0);
    call(10000);
    ck_assert_msg(outcome.status == RPC_OK, "%s", outcome.text);
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

START_TEST(a_held_call_can_be_cancelled_and_a_hindered_client_closed)
{
    Gimbal__CancelRequest request = cancel_request("j-1");
    open_house();
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    hinder(DELAY_MS, 10000);
    struct rpc_pending *pending = house_start(client, COORDINATOR_CANCEL, &request, NULL, &outcome);
    rpc_pending_cancel(pending);
    ck_assert(!outcome.done);
    house_start(client, COORDINATOR_CANCEL, &request, NULL, &outcome);
    house_pump_count(&house, &seen.count, 1); /* its answer is on the way, and freed there */
    house_close(&house);
}
END_TEST

SUITE(rpc_hindrance)
{
    const TTest *const tests[] = {
        nothing_passes_a_cut_connection_until_it_ends,
        an_answer_that_comes_over_a_cut_connection_is_not_heard,
        a_slow_connection_is_late_with_both_the_request_and_the_answer,
        a_held_call_can_be_cancelled_and_a_hindered_client_closed,
    };
    return house_run("rpc hindrance", tests, sizeof tests / sizeof *tests);
}
