/* test_closing.c - connections that close while large messages are on their way over them. */
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/handlers.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 3 << 20, ROUNDS = 20 };

static char *large_text(void)
{
    char *text = malloc(SIZE);
    memset(text, 'x', SIZE - 1);
    text[SIZE - 1] = '\0';
    return text;
}

static void answer_at_length(struct rpc_call *call, void *data)
{
    Gimbal__PlanReply reply = GIMBAL__PLAN_REPLY__INIT;
    reply.explanation = data;
    rpc_call_reply(call, &reply.base);
}

static void *close_client(void *client)
{
    rpc_client_close(client);
    return NULL;
}

static void *close_server(void *server)
{
    rpc_server_destroy(server);
    return NULL;
}

/* What hangs in NNG hangs for ever: so it is given ten seconds on a thread of its own. */
static void expect_end(void *(*close_it)(void *), void *what, const char *name)
{
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_create(&thread, NULL, close_it, what);
    int rc = pthread_timedjoin_np(thread, NULL, &until);
    ck_assert_msg(rc == 0, "closing the %s has not ended after ten seconds", name);
}

START_TEST(a_client_closes_while_answers_arrive)
{
    struct house house;
    struct outcome outcomes[4] = {0};
    char *text = large_text();
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_PLAN, answer_at_length, text);
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct rpc_client *client = house_client(&house);
        uint64_t arrived = rpc_server_counters(house.server)->arrived;
        for (size_t i = 0; i < 4; i++)
            house_start(client, COORDINATOR_PLAN, &request, NULL, &outcomes[i]);
        while (rpc_server_counters(house.server)->arrived < arrived + 4)
            rpc_server_poll(house.server, -1);
        house.client_count--;
        expect_end(close_client, client, "client");
    }
    free(text);
    house_close(&house);
}
END_TEST

START_TEST(a_server_closes_while_requests_arrive)
{
    struct outcome outcomes[4];
    char *text = large_text();
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    spec.yaml = text;
    request.spec = &spec;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct house house;
        house_open(&house, NULL);
        memset(outcomes, 0, sizeof outcomes);
        for (size_t i = 0; i < 4; i++)
            house_client(&house);
        for (size_t i = 0; i < 4; i++)
            house_start(house.clients[i], COORDINATOR_SUBMIT, &request, NULL, &outcomes[i]);
        /* Poll without taking anything: the first has arrived, the others are arriving. */
        struct pollfd fd = {.fd = rpc_server_fd(house.server), .events = POLLIN};
        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        expect_end(close_server, house.server, "server");
        house.server = NULL;
        house_close(&house);
    }
    free(text);
}
END_TEST

/* A call that runs out while its answer arrives gives the connection up in the middle of that. */
START_TEST(the_call_after_one_that_ran_out_is_answered)
{
    struct house house;
    char *text = large_text();
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_PLAN, answer_at_length, text);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    struct rpc_client *client = house_client(&house);
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    Gimbal__GetJobRequest get = GIMBAL__GET_JOB_REQUEST__INIT;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct rpc_call_options soon = {.deadline_ms = 1 + (uint32_t)round % 6, .once = true};
        struct outcome outcome = {0};
        house_start(client, COORDINATOR_PLAN, &request, &soon, &outcome);
        house_pump(&house, &outcome.done);
        outcome_clear(&outcome);
        house_call(&house, client, COORDINATOR_GET_JOB, &get, &outcome);
        ck_assert_msg(outcome.status == RPC_OK, "in round %zu: %s", round, outcome.text);
        outcome_clear(&outcome);
    }
    free(text);
    house_close(&house);
}
END_TEST

SUITE(rpc_closing)
{
    const TTest *const tests[] = {
        a_client_closes_while_answers_arrive,
        a_server_closes_while_requests_arrive,
        the_call_after_one_that_ran_out_is_answered,
    };
    return house_run("rpc closing", tests, sizeof tests / sizeof *tests);
}
