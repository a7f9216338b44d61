/* test_calls.c - unary calls over real sockets: what arrives, and what is refused. */
#include "common/message/message.h"
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/handlers.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(a_call_reaches_its_handler_and_brings_its_reply)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    request.job = (char *)"j-1";
    house_call(&house, house_client(&house), COORDINATOR_GET_JOB, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    const Gimbal__GetJobReply *reply = (const Gimbal__GetJobReply *)outcome.reply;
    ck_assert_str_eq(reply->status->job, "j-1");
    ck_assert_uint_eq(reply->status->step, 41);
    outcome_clear(&outcome);
    ck_assert_uint_eq(rpc_server_handling(house.server, COORDINATOR_GET_JOB)->count, 1);
    ck_assert_uint_eq(rpc_server_handling(house.server, COORDINATOR_CANCEL)->count, 0);
    house_close(&house);
}
END_TEST

START_TEST(a_handlers_refusal_arrives_with_its_sentence)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("");
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_NOT_FOUND);
    ck_assert_str_eq(outcome.text, "there is no job ''");
    ck_assert_str_eq(seen.caller, "node-a");
    ck_assert_uint_eq(seen.client, rpc_client_id(client));
    ck_assert_uint_eq(rpc_server_counters(house.server)->answered[RPC_NOT_FOUND], 1);
    house_close(&house);
}
END_TEST

static void fail_with_broken_text(struct rpc_call *call, void *data)
{
    (void)data;
    rpc_call_fail(call, RPC_NOT_FOUND, "no file %s here", "\xff\xfe");
}

START_TEST(a_sentence_that_is_no_utf8_arrives_mended)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, fail_with_broken_text, NULL);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, house_client(&house), COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_NOT_FOUND);
    ck_assert_str_eq(outcome.text, "no file ?? here");
    house_close(&house);
}
END_TEST

START_TEST(a_method_without_a_handler_is_unimplemented)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, house_client(&house), COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_UNIMPLEMENTED);
    ck_assert_str_eq(outcome.text, "Coordinator does not take the request to cancel the job");
    house_close(&house);
}
END_TEST

START_TEST(a_caller_must_say_hello_first)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, house_stranger(&house), COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(outcome.text, "open a session first"));
    ck_assert_uint_eq(rpc_server_counters(house.server)->stale, 1);
    ck_assert_uint_eq(seen.count, 0);
    house_close(&house);
}
END_TEST

/* The server reads its clock for every arrival, on one of NNG's threads: so a test can wait for
 * a call to arrive before anybody looks at it. */
static sem_t clock_was_read;

static uint64_t telling_clock(void)
{
    uint64_t now_ms = house_now_ms;
    sem_post(&clock_was_read);
    return now_ms;
}

START_TEST(a_call_that_waited_past_its_deadline_is_not_handled)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct rpc_server_options options = house_options();
    sem_init(&clock_was_read, 0, 0);
    options.clock_cb = telling_clock;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    struct rpc_client *client = house_client(&house);
    while (sem_trywait(&clock_was_read) == 0)
        continue;
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_start(client, COORDINATOR_CANCEL, &request, NULL, &outcome);
    sem_wait(&clock_was_read);
    house_now_ms += 60000;
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    ck_assert_ptr_nonnull(strstr(outcome.text, "waited 60000 ms"));
    ck_assert_uint_eq(rpc_server_counters(house.server)->expired, 1);
    ck_assert_uint_eq(seen.count, 0);
    house_close(&house);
    sem_destroy(&clock_was_read);
}
END_TEST

START_TEST(calls_that_are_kept_do_not_keep_others_waiting)
{
    enum { COUNT = 100 };
    struct house house;
    struct outcome kept[COUNT] = {0}, outcome = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("j-1");
    for (size_t i = 0; i < COUNT; i++)
        house_start(client, COORDINATOR_CANCEL, &request, NULL, &kept[i]);
    house_pump_count(&house, &seen.count, COUNT);
    Gimbal__GetJobRequest get = GIMBAL__GET_JOB_REQUEST__INIT;
    house_call(&house, client, COORDINATOR_GET_JOB, &get, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
    for (size_t i = 0; i < COUNT; i++)
        rpc_call_fail(seen.kept[i], RPC_ABORTED, "enough");
    for (size_t i = 0; i < COUNT; i++) {
        house_pump(&house, &kept[i].done);
        ck_assert_int_eq(kept[i].status, RPC_ABORTED);
    }
    house_close(&house);
}
END_TEST

START_TEST(a_port_in_use_is_named_with_what_to_do)
{
    struct house house;
    struct error err;
    struct rpc_server *second;
    struct rpc_server_options options = house_options();
    house_open(&house, NULL);
    ck_assert_int_eq(rpc_server_create(&options, &second, &err), 0);
    ck_assert_int_eq(rpc_server_listen(second, RPC_EVERYBODY, house.address, &err), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(err.text, house.address));
    ck_assert_ptr_nonnull(strstr(err.text, "choose another port"));
    ck_assert_int_eq(rpc_server_listen(second, RPC_USER, "tcp://192.0.2.1:7070", &err), -EACCES);
    rpc_server_destroy(second);
    house_close(&house);
}
END_TEST

START_TEST(a_listener_lets_only_its_roles_in)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct error err;
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    ck_assert_int_eq(rpc_server_listen(house.server, RPC_WORKER, "tcp://127.0.0.1:0", &err), 0);
    snprintf(house.address, sizeof house.address, "%s", rpc_server_address(house.server, 1));
    ck_assert_ptr_null(rpc_server_address(house.server, 2));
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, house_client(&house), COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_PERMISSION_DENIED);
    ck_assert_ptr_nonnull(strstr(outcome.text, house.address));
    ck_assert_ptr_nonnull(
        strstr(outcome.text, "the request to cancel the job is not open to workers"));
    ck_assert_uint_eq(seen.count, 0);
    house_close(&house);
}
END_TEST

static int admit_nobody(void *data, unsigned roles, const Gimbal__Envelope *envelope,
                        struct error *err)
{
    (void)data;
    ck_assert_uint_eq(roles, RPC_EVERYBODY);
    return error_set(err, -EKEYREJECTED, "the credential of '%s' was revoked", envelope->caller);
}

START_TEST(who_is_not_admitted_is_unauthenticated)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct rpc_server_options options = house_options();
    options.admit_cb = admit_nobody;
    house_open(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    Gimbal__CancelRequest request = cancel_request("j-1");
    /* Hello is open to strangers, that they can join; nothing else is. */
    house_call(&house, house_client(&house), COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_UNAUTHENTICATED);
    ck_assert_uint_eq(seen.count, 0);
    ck_assert_str_eq(outcome.text, "the credential of 'node-a' was revoked");
    house_close(&house);
}
END_TEST

START_TEST(a_request_too_large_for_its_method_is_not_even_sent)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    struct rpc_client *client = house_client(&house);
    uint64_t arrived = rpc_server_counters(house.server)->arrived;
    char *job = malloc(10000);
    memset(job, 'x', 9999);
    job[9999] = '\0';
    Gimbal__CancelRequest request = cancel_request(job);
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(outcome.text, "may have 4096 bytes"));
    ck_assert_uint_eq(rpc_server_counters(house.server)->arrived, arrived);
    free(job);
    house_close(&house);
}
END_TEST

static void reply_too_much(struct rpc_call *call, void *data)
{
    Gimbal__PlanReply reply = GIMBAL__PLAN_REPLY__INIT;
    reply.explanation = data;
    rpc_call_reply(call, &reply.base);
}

START_TEST(a_reply_too_large_is_refused_in_words)
{
    struct house house;
    struct outcome outcome = {0};
    house_open(&house, NULL);
    char *text = malloc(RPC_REPLY_BYTES_MAX + 1);
    memset(text, 'x', RPC_REPLY_BYTES_MAX);
    text[RPC_REPLY_BYTES_MAX] = '\0';
    rpc_server_handle(house.server, COORDINATOR_PLAN, reply_too_much, text);
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    house_call(&house, house_client(&house), COORDINATOR_PLAN, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_RESOURCE_EXHAUSTED);
    free(text);
    house_close(&house);
}
END_TEST

/* Frames of a megabyte, answered, refused, and answered too late: lost ones would show. */
START_TEST(calls_leave_no_memory_behind)
{
    enum { COUNT = 50, SIZE = 1 << 20 };
    struct house house;
    struct seen seen = {0};
    house_open(&house, NULL);
    char *text = calloc(1, SIZE);
    memset(text, 'x', SIZE - 1);
    rpc_server_handle(house.server, COORDINATOR_PLAN, reply_too_much, text);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, handle_by_keeping, &seen);
    struct rpc_client *client = house_client(&house);
    size_t before = 0;
    for (size_t i = 0; i < COUNT; i++) {
        struct outcome outcome = {0}, late = {0};
        Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
        request.job_yaml = text;
        house_call(&house, client, COORDINATOR_PLAN, &request, &outcome);
        ck_assert_int_eq(outcome.status, RPC_OK);
        outcome_clear(&outcome);
        Gimbal__CancelRequest cancel = cancel_request("");
        house_call(&house, client, COORDINATOR_CANCEL, &cancel, &outcome);
        ck_assert_int_eq(outcome.status, RPC_UNIMPLEMENTED);
        Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
        Gimbal__SubmitRequest submit = GIMBAL__SUBMIT_REQUEST__INIT;
        spec.yaml = text;
        submit.spec = &spec;
        struct rpc_pending *pending = house_start(client, COORDINATOR_SUBMIT, &submit, NULL, &late);
        house_pump_count(&house, &seen.count, i + 1);
        rpc_pending_cancel(pending);
        rpc_call_fail(seen.kept[i], RPC_ABORTED, "too late");
        if (i == COUNT / 10) /* by now, whatever is kept for reuse is there */
            before = house_memory_bytes();
    }
    ck_assert_uint_lt(house_memory_bytes(), before + 20 * SIZE);
    free(text);
    house_close(&house);
}
END_TEST

static void *serve_until_stopped(void *data)
{
    struct house *house = data;
    while (rpc_server_counters(house->server)->arrived < 3)
        rpc_server_poll(house->server, -1);
    return NULL;
}

START_TEST(a_waiting_call_returns_its_reply_or_its_sentence)
{
    struct house house;
    struct seen seen = {0};
    struct error err = {""};
    ProtobufCMessage *reply = NULL;
    struct rpc_call_options options = {.deadline_ms = 10000};
    pthread_t thread;
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    struct rpc_client *client = house_stranger(&house);
    pthread_create(&thread, NULL, serve_until_stopped, &house);
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    ck_assert_int_eq(
        rpc_client_call(client, COORDINATOR_HELLO, &hello.base, &options, &reply, &err), RPC_OK);
    ck_assert_str_eq(((Gimbal__HelloReply *)reply)->release, "0.1.0");
    ck_assert_uint_eq(((Gimbal__HelloReply *)reply)->unix_ms, UNIX_MS);
    message_free(reply);
    Gimbal__CancelRequest request = cancel_request("j-1");
    ck_assert_int_eq(
        rpc_client_call(client, COORDINATOR_CANCEL, &request.base, &options, &reply, &err), RPC_OK);
    message_free(reply);
    request = cancel_request("");
    ck_assert_int_eq(
        rpc_client_call(client, COORDINATOR_CANCEL, &request.base, &options, &reply, &err),
        RPC_NOT_FOUND);
    ck_assert_str_eq(err.text, "there is no job ''");
    pthread_join(thread, NULL);
    house_close(&house);
}
END_TEST

SUITE(rpc_calls)
{
    const TTest *const tests[] = {
        a_call_reaches_its_handler_and_brings_its_reply,
        a_handlers_refusal_arrives_with_its_sentence,
        a_sentence_that_is_no_utf8_arrives_mended,
        a_method_without_a_handler_is_unimplemented,
        a_caller_must_say_hello_first,
        a_call_that_waited_past_its_deadline_is_not_handled,
        calls_that_are_kept_do_not_keep_others_waiting,
        a_port_in_use_is_named_with_what_to_do,
        a_listener_lets_only_its_roles_in,
        who_is_not_admitted_is_unauthenticated,
        a_request_too_large_for_its_method_is_not_even_sent,
        a_reply_too_large_is_refused_in_words,
        calls_leave_no_memory_behind,
        a_waiting_call_returns_its_reply_or_its_sentence,
    };
    return house_run("rpc calls", tests, sizeof tests / sizeof *tests);
}
