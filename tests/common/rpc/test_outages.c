/* test_outages.c - servers that die, hang, return as another, or were never there. */
#include "common/base/clock.h"
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/transport.h"
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/handlers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(a_call_of_an_ended_term_is_refused_until_hello_is_said_again)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct rpc_server_options options = house_options();
    house_open(&house, NULL);
    struct rpc_client *client = house_client(&house);
    ck_assert_uint_eq(rpc_client_term(client), TERM);
    house_stop(&house);
    options.term++;
    options.instance++;
    house_restart(&house, &options);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);

    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_FAILED_PRECONDITION);
    ck_assert_uint_eq(seen.count, 0);
    outcome_clear(&outcome);
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_call(&house, client, COORDINATOR_HELLO, &hello, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    ck_assert_uint_eq(rpc_client_term(client), TERM + 1);
    outcome_clear(&outcome);
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

/* An older start of the coordinator, or a twin of this one, is not followed. */
START_TEST(an_old_or_second_coordinator_is_refused_by_its_callers)
{
    static const int64_t terms[] = {-1, 0};
    for (size_t i = 0; i < 2; i++) {
        struct house house;
        struct outcome outcome = {0};
        struct rpc_server_options options = house_options();
        house_open(&house, NULL);
        struct rpc_client *client = house_client(&house);
        house_stop(&house);
        options.term = (uint64_t)(TERM + terms[i]);
        options.instance++;
        house_restart(&house, &options);
        Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
        house_call(&house, client, COORDINATOR_HELLO, &hello, &outcome);
        ck_assert_int_eq(outcome.status, RPC_FAILED_PRECONDITION);
        ck_assert_ptr_nonnull(strstr(outcome.text, i == 0 ? "old one" : "two run"));
        ck_assert_uint_eq(rpc_client_term(client), TERM);
        house_close(&house);
    }
}
END_TEST

/* A deadline that is to be missed only by who keeps the call, and not by a machine that stands
 * still before the call arrives. */
#define SOON_MS 3000

/* Make a call after this time that is answered too late, and one that is answered. */
static void miss_a_deadline(uint32_t delay_ms)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct rpc_server_options still = house_options();
    struct rpc_call_options options = {.deadline_ms = SOON_MS, .delay_ms = delay_ms};
    still.clock_cb = house_clock; /* to the server no call is late */
    house_open(&house, &still);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_start(client, COORDINATOR_CANCEL, &request, &options, &outcome);
    house_pump_count(&house, &seen.count, 1);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    ck_assert_ptr_nonnull(
        strstr(outcome.text, "did not answer the request to cancel the job within 3000 ms"));
    outcome_clear(&outcome);

    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    rpc_call_reply(seen.kept[0], &reply.base);
    Gimbal__GetJobRequest get = GIMBAL__GET_JOB_REQUEST__INIT;
    house_call(&house, client, COORDINATOR_GET_JOB, &get, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
    house_close(&house);
}

START_TEST(a_caller_gives_up_at_its_deadline_and_a_late_answer_harms_nobody)
{
    miss_a_deadline(0);
}
END_TEST

START_TEST(so_does_one_that_waited_before_it_called)
{
    miss_a_deadline(10);
}
END_TEST

START_TEST(a_cancelled_call_ends_without_its_callback)
{
    struct house house;
    struct outcome outcome = {0}, next = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("j-1");
    struct rpc_pending *pending = house_start(client, COORDINATOR_CANCEL, &request, NULL, &outcome);
    house_pump_count(&house, &seen.count, 1);
    rpc_pending_cancel(pending);
    Gimbal__GetJobRequest get = GIMBAL__GET_JOB_REQUEST__INIT;
    house_call(&house, client, COORDINATOR_GET_JOB, &get, &next);
    ck_assert(!outcome.done);
    outcome_clear(&next);
    house_close(&house);
}
END_TEST

START_TEST(an_idempotent_call_is_sent_again_when_its_server_died)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_start(client, COORDINATOR_CANCEL, &request, NULL, &outcome);
    house_pump_count(&house, &seen.count, 1);
    house_stop(&house);
    house_restart(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_cancel, &seen);
    house_pump(&house, &outcome.done);
    ck_assert_msg(outcome.status == RPC_OK, "%s", outcome.text);
    ck_assert_uint_eq(seen.count, 2);
    outcome_clear(&outcome);
    house_close(&house);
}
END_TEST

static void be_unavailable_twice(struct rpc_call *call, void *data)
{
    struct seen *seen = data;
    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    if (++seen->count <= 2)
        rpc_call_fail(call, RPC_UNAVAILABLE, "the store is busy");
    else
        rpc_call_reply(call, &reply.base);
}

START_TEST(an_idempotent_call_is_sent_again_while_the_server_is_unavailable)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    struct rpc_call_options once = {.deadline_ms = 10000, .once = true};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, be_unavailable_twice, &seen);
    struct rpc_client *client = house_client(&house);
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_call(&house, client, COORDINATOR_CANCEL, &request, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    ck_assert_uint_eq(seen.count, 3);
    outcome_clear(&outcome);
    seen.count = 0;
    house_start(client, COORDINATOR_CANCEL, &request, &once, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_UNAVAILABLE);
    ck_assert_str_eq(outcome.text, "the store is busy");
    ck_assert_uint_eq(seen.count, 1);
    house_close(&house);
}
END_TEST

/* Answer the Hello that has come to listener by sending its caller elsewhere for held calls. */
static void redirect_hello(nng_socket listener, uint32_t held_port)
{
    nng_msg *frame;
    Gimbal__Envelope *hello, answer = GIMBAL__ENVELOPE__INIT;
    Gimbal__HelloReply reply = GIMBAL__HELLO_REPLY__INIT;
    ck_assert_int_eq(nng_recvmsg(listener, &frame, 0), 0);
    ck_assert_int_eq(envelope_decode(frame, &hello, NULL), 0);
    nng_msg_free(frame);
    reply.term = TERM;
    reply.instance = INSTANCE;
    reply.held_port = held_port;
    answer.protocol_major = RPC_PROTOCOL_MAJOR;
    answer.kind = GIMBAL__ENVELOPE__KIND__REPLY;
    answer.call_id = hello->call_id;
    answer.payload.data = message_pack(&reply.base, &answer.payload.len);
    ck_assert_int_eq(nng_sendmsg(listener, envelope_encode(&answer), 0), 0);
    free(answer.payload.data);
    message_free(&hello->base);
}

START_TEST(held_calls_follow_hello_to_another_port)
{
    struct house house, other;
    struct outcome outcome = {0}, held = {0};
    struct seen seen = {0};
    struct rpc_address address;
    nng_socket listener;
    house_open(&other, NULL);
    rpc_server_handle(other.server, COORDINATOR_WATCH_EVENTS, handle_by_keeping, &seen);
    ck_assert_int_eq(rpc_address_parse(other.address, &address, NULL), 0);
    house_open(&house, NULL);
    struct rpc_client *client = house_client(&house);
    house_stop(&house);
    ck_assert_int_eq(nng_rep0_open(&listener), 0);
    ck_assert_int_eq(nng_listen(listener, house.address, NULL, 0), 0);

    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_start(client, COORDINATOR_HELLO, &hello, NULL, &outcome);
    redirect_hello(listener, address.port + 1u);
    house_pump(&house, &outcome.done);
    ck_assert_msg(outcome.status == RPC_OK, "%s", outcome.text);
    outcome_clear(&outcome);
    Gimbal__StreamPoll poll = GIMBAL__STREAM_POLL__INIT;
    house_start(client, COORDINATOR_WATCH_EVENTS, &poll, NULL, &held);
    house_pump_count(&other, &seen.count, 1);
    house_close(&house);
    house_close(&other);
    nng_close(listener);
}
END_TEST

/* A listener that takes connections, and says which it took, but never answers. */
static void tell_connection(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    (void)pipe;
    (void)event;
    sem_post(data);
}

START_TEST(a_connection_on_which_nothing_is_heard_is_made_anew)
{
    struct house house;
    struct outcome outcome = {0};
    struct rpc_call_options soon = {.deadline_ms = 300, .once = true};
    nng_socket mute;
    sem_t connections;
    house_open(&house, NULL);
    house_stop(&house);
    sem_init(&connections, 0, 0);
    ck_assert_int_eq(nng_rep0_open(&mute), 0);
    nng_pipe_notify(mute, NNG_PIPE_EV_ADD_POST, tell_connection, &connections);
    ck_assert_int_eq(nng_listen(mute, house.address, NULL, 0), 0);

    struct rpc_client *client = house_stranger(&house);
    sem_wait(&connections);
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_start(client, COORDINATOR_HELLO, &hello, &soon, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_DEADLINE_EXCEEDED);
    sem_wait(&connections);
    house_close(&house);
    nng_close(mute);
    sem_destroy(&connections);
}
END_TEST

/* Takes a connection, greets as a REP socket of NNG does, and reads nothing more than the other's
 * greeting. */
static int accept_deaf(int listener)
{
    static const unsigned char greeting[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    unsigned char theirs[8];
    struct pollfd fd = {.fd = listener, .events = POLLIN};
    ck_assert_msg(poll(&fd, 1, 10000) == 1, "nobody has connected in ten seconds");
    int connection = accept(listener, NULL, NULL);
    ck_assert_int_ge(connection, 0);
    ck_assert_int_eq(send(connection, greeting, 8, MSG_NOSIGNAL), 8);
    ck_assert_int_eq(recv(connection, theirs, 8, MSG_WAITALL), 8);
    return connection;
}

static int listen_deaf(const struct house *house)
{
    struct rpc_address address;
    const int on = 1, small = 4096;
    ck_assert_int_eq(rpc_address_parse(house->address, &address, NULL), 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(address.port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    return listener;
}

START_TEST(a_connection_in_which_a_cancelled_call_is_stuck_is_made_anew)
{
    enum { SIZE = (4 << 20) - 100 };
    struct house house;
    struct outcome stuck = {0}, outcome = {0};
    struct rpc_call_options soon = {.deadline_ms = 300, .once = true};
    house_open(&house, NULL);
    house_stop(&house);
    int listener = listen_deaf(&house);
    struct rpc_client *client = house_stranger(&house);
    int first = accept_deaf(listener);

    char *text = calloc(1, SIZE);
    memset(text, 'x', SIZE - 1);
    Gimbal__PlanRequest plan = GIMBAL__PLAN_REQUEST__INIT;
    plan.job_yaml = text;
    struct rpc_pending *pending = house_start(client, COORDINATOR_PLAN, &plan, NULL, &stuck);
    struct pollfd fd = {.fd = first, .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 10000), 1); /* it is under way, and as large as no buffer is */
    rpc_pending_cancel(pending);
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_start(client, COORDINATOR_HELLO, &hello, &soon, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_UNAVAILABLE); /* not even sent */
    int second = accept_deaf(listener);
    ck_assert(!stuck.done);
    free(text);
    house_close(&house);
    close(first);
    close(second);
    close(listener);
}
END_TEST

START_TEST(a_connection_over_which_others_are_answered_is_kept)
{
    struct house house;
    struct outcome slow = {0}, outcome = {0};
    struct seen seen = {0};
    struct rpc_server_options still = house_options();
    struct rpc_call_options soon = {.deadline_ms = SOON_MS};
    still.clock_cb = house_clock;
    house_open(&house, &still);
    rpc_server_handle(house.server, COORDINATOR_CANCEL, handle_by_keeping, &seen);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, handle_by_keeping, &seen);
    rpc_server_handle(house.server, COORDINATOR_GET_JOB, handle_get_job, NULL);
    struct rpc_client *client = house_client(&house);
    Gimbal__SubmitRequest submit = GIMBAL__SUBMIT_REQUEST__INIT;
    struct outcome submitted = {0};
    house_start(client, COORDINATOR_SUBMIT, &submit, NULL, &submitted);
    house_pump_count(&house, &seen.count, 1); /* it is the first that is kept */
    Gimbal__CancelRequest request = cancel_request("j-1");
    house_start(client, COORDINATOR_CANCEL, &request, &soon, &slow);
    house_pump_count(&house, &seen.count, 2);
    for (size_t i = 0; !slow.done; i++) {
        Gimbal__GetJobRequest get = GIMBAL__GET_JOB_REQUEST__INIT;
        house_call(&house, client, COORDINATOR_GET_JOB, &get, &outcome);
        ck_assert_int_eq(outcome.status, RPC_OK);
        outcome_clear(&outcome);
    }
    ck_assert_int_eq(slow.status, RPC_DEADLINE_EXCEEDED);
    /* The submission, sent once, is still under way. */
    ck_assert(!submitted.done);
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    rpc_call_reply(seen.kept[0], &reply.base);
    house_pump(&house, &submitted.done);
    ck_assert_int_eq(submitted.status, RPC_OK);
    outcome_clear(&submitted);
    house_close(&house);
}
END_TEST

START_TEST(a_mutating_call_is_sent_once_with_a_key_and_its_loss_is_told)
{
    struct house house;
    struct outcome outcome = {0};
    struct seen seen = {0};
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, handle_by_keeping, &seen);
    struct rpc_client *client = house_client(&house);
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    house_start(client, COORDINATOR_SUBMIT, &request, NULL, &outcome);
    house_pump_count(&house, &seen.count, 1);
    ck_assert_uint_gt(strlen(seen.key), 16);
    house_stop(&house);
    house_restart(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, handle_by_keeping, &seen);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(outcome.text, "whether it was done is not known"));
    ck_assert_uint_eq(seen.count, 1);
    outcome_clear(&outcome);

    /* Who repeats it says so with its key. */
    struct rpc_call_options options = {.deadline_ms = 10000, .idempotency_key = "wish-1"};
    house_start(client, COORDINATOR_SUBMIT, &request, &options, &outcome);
    house_pump_count(&house, &seen.count, 2);
    ck_assert_str_eq(seen.key, "wish-1");
    house_close(&house);
}
END_TEST

START_TEST(a_coordinator_that_is_not_there_is_named)
{
    struct house house;
    struct error err;
    struct outcome outcome = {0};
    struct rpc_call_options soon = {.deadline_ms = 50};
    house_open(&house, NULL);
    house_stop(&house);
    struct rpc_client *client;
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = house.address,
                                         .caller = "me",
                                         .fail_fast = true};
    ck_assert_int_eq(rpc_client_open(&options, &client, &err), -ECONNREFUSED);
    ck_assert_ptr_nonnull(strstr(err.text, house.address));
    ck_assert_ptr_nonnull(strstr(err.text, "start the coordinator"));

    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    house_start(house_stranger(&house), COORDINATOR_HELLO, &hello, &soon, &outcome);
    house_pump(&house, &outcome.done);
    ck_assert_int_eq(outcome.status, RPC_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(outcome.text, "is the coordinator running?"));
    house_close(&house);
}
END_TEST

/* As one that is stopped: the kernel connects, and nobody speaks. */
START_TEST(a_coordinator_that_does_not_speak_is_waited_for_no_longer_than_told)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof place;
    int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(mute, (const struct sockaddr *)&place, size), 0);
    ck_assert_int_eq(listen(mute, 8), 0);
    ck_assert_int_eq(getsockname(mute, (struct sockaddr *)&place, &size), 0);
    char address[64];
    struct error err;
    struct rpc_client *client;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(place.sin_port));
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = address,
                                         .caller = "me",
                                         .fail_fast = true,
                                         .patience_ms = 200};
    uint64_t began_ms = clock_ms();
    ck_assert_int_eq(rpc_client_open(&options, &client, &err), -EHOSTDOWN);
    uint64_t took_ms = clock_ms() - began_ms;
    ck_assert_msg(took_ms >= 200 && took_ms < 5000, "%llu ms", (unsigned long long)took_ms);
    ck_assert_ptr_nonnull(strstr(err.text, address));
    close(mute);
}
END_TEST

SUITE(rpc_outages)
{
    const TTest *const tests[] = {
        a_call_of_an_ended_term_is_refused_until_hello_is_said_again,
        an_old_or_second_coordinator_is_refused_by_its_callers,
        a_caller_gives_up_at_its_deadline_and_a_late_answer_harms_nobody,
        so_does_one_that_waited_before_it_called,
        a_cancelled_call_ends_without_its_callback,
        an_idempotent_call_is_sent_again_when_its_server_died,
        an_idempotent_call_is_sent_again_while_the_server_is_unavailable,
        held_calls_follow_hello_to_another_port,
        a_connection_on_which_nothing_is_heard_is_made_anew,
        a_connection_in_which_a_cancelled_call_is_stuck_is_made_anew,
        a_connection_over_which_others_are_answered_is_kept,
        a_mutating_call_is_sent_once_with_a_key_and_its_loss_is_told,
        a_coordinator_that_is_not_there_is_named,
        a_coordinator_that_does_not_speak_is_waited_for_no_longer_than_told,
    };
    return house_run("rpc outages", tests, sizeof tests / sizeof *tests);
}
