/* test_hostile.c - frames that no client of ours sends: each is answered or dropped, and the
 * server goes on. */
#include "common/base/random.h"
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/transport.h"
#include "tests/common/rpc/fixture.h"
#include "tests/common/rpc/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Send a frame, let the server answer, and decode what it says. */
static Gimbal__Envelope *ask(struct house *house, const struct stranger *stranger, nng_msg *frame)
{
    uint64_t arrived = rpc_server_counters(house->server)->arrived;
    Gimbal__Envelope *answer;
    stranger_send(stranger, frame);
    while (rpc_server_counters(house->server)->arrived == arrived)
        rpc_server_poll(house->server, -1);
    nng_aio_wait(stranger->aio);
    ck_assert_int_eq(nng_aio_result(stranger->aio), 0);
    nng_msg *reply = nng_aio_get_msg(stranger->aio);
    ck_assert_int_eq(envelope_decode(reply, &answer, NULL), 0);
    ck_assert_int_eq(answer->kind, GIMBAL__ENVELOPE__KIND__REPLY);
    nng_msg_free(reply);
    return answer;
}

static void ask_and_expect(struct house *house, const struct stranger *stranger, nng_msg *frame,
                           enum rpc_status status, const char *words)
{
    Gimbal__Envelope *answer = ask(house, stranger, frame);
    ck_assert_msg(answer->status == status, "%s: %s",
                  rpc_status_name((enum rpc_status)answer->status), answer->status_text);
    ck_assert_msg(strstr(answer->status_text, words) != NULL, "%s", answer->status_text);
    message_free(&answer->base);
}

static void submit(struct rpc_call *call, void *data)
{
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    ++*(size_t *)data;
    rpc_call_reply(call, &reply.base);
}

static nng_msg *frame_of(const void *bytes, size_t size)
{
    nng_msg *frame;
    ck_assert_int_eq(nng_msg_alloc(&frame, 0), 0);
    ck_assert_int_eq(nng_msg_append(frame, bytes, size), 0);
    return frame;
}

START_TEST(what_is_no_request_is_answered_and_counted)
{
    struct house house;
    struct stranger stranger;
    house_open(&house, NULL);
    stranger_open(&stranger, &house, false);
    ask_and_expect(&house, &stranger, frame_of("garbage", 7), RPC_INVALID_ARGUMENT,
                   "no such message");
    ask_and_expect(&house, &stranger, frame_of("", 0), RPC_INVALID_ARGUMENT,
                   "not that of a request");
    Gimbal__Envelope envelope = stranger_request("Hello");
    nng_msg *cut = envelope_encode(&envelope);
    nng_msg_chop(cut, 1);
    ask_and_expect(&house, &stranger, cut, RPC_INVALID_ARGUMENT, "no such message");
    envelope.kind = GIMBAL__ENVELOPE__KIND__REPLY;
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                   "not that of a request");
    ck_assert_uint_eq(rpc_server_counters(house.server)->malformed, 4);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

START_TEST(each_wrong_request_is_told_what_is_wrong)
{
    struct house house;
    struct stranger stranger;
    size_t count = 0;
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, submit, &count);
    stranger_open(&stranger, &house, false);

    Gimbal__Envelope envelope = stranger_request("Submit");
    envelope.protocol_major++;
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_FAILED_PRECONDITION,
                   "protocol 2.0 meets protocol 1.0");
    envelope = stranger_request("Explode");
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_UNIMPLEMENTED,
                   "does not know the request 'Explode'");
    envelope = stranger_request("Submit");
    envelope.deadline_ms = 0;
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                   "the request to submit the job came without a deadline");
    envelope = stranger_request("Submit");
    envelope.term--;
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_FAILED_PRECONDITION,
                   "of term 6");
    envelope = stranger_request("Submit");
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                   "needs an idempotency key");
    envelope.idempotency_key = (char *)"key";
    envelope.payload = (ProtobufCBinaryData){3, (uint8_t *)"\x0a\x7f\x01"};
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                   "gimbal.SubmitRequest");
    envelope.payload = (ProtobufCBinaryData){5, (uint8_t *)"\x0a\x03\x0a\x01\xff"};
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                   "'name' is not UTF-8");
    ck_assert_uint_eq(count, 0);

    envelope.payload = (ProtobufCBinaryData){0};
    Gimbal__Envelope *answer = ask(&house, &stranger, envelope_encode(&envelope));
    ck_assert_uint_eq(answer->status, RPC_OK);
    ck_assert_uint_eq(answer->call_id, 5);
    ck_assert_uint_eq(answer->term, TERM);
    ck_assert_uint_eq(count, 1);
    message_free(&answer->base);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

START_TEST(a_call_on_the_wrong_port_is_refused)
{
    struct house house;
    struct stranger stranger;
    size_t count = 0;
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, submit, &count);
    rpc_server_handle(house.server, COORDINATOR_WATCH_EVENTS, submit, &count);
    for (int held = 0; held <= 1; held++) {
        Gimbal__Envelope envelope = stranger_request(held ? "Submit" : "WatchEvents");
        struct rpc_address address;
        char right[64];
        ck_assert_int_eq(rpc_address_parse(house.address, &address, NULL), 0);
        snprintf(right, sizeof right, "the port of the address is %u", address.port);
        stranger_open(&stranger, &house, held);
        ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_INVALID_ARGUMENT,
                       held ? right : "wrong port");
        stranger_close(&stranger);
    }
    ck_assert_uint_eq(count, 0);
    house_close(&house);
}
END_TEST

START_TEST(a_payload_above_its_methods_limit_is_refused_before_decoding)
{
    struct house house;
    struct stranger stranger;
    house_open(&house, NULL);
    stranger_open(&stranger, &house, false);
    Gimbal__Envelope envelope = stranger_request("Hello");
    envelope.payload.len = 100000;
    envelope.payload.data = calloc(1, envelope.payload.len);
    ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_RESOURCE_EXHAUSTED,
                   "may have 4096 bytes, this one has 100000");
    free(envelope.payload.data);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

/* The server's own client still gets through. */
static void assert_alive(struct house *house)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct outcome outcome = {0};
    house_call(house, house_stranger(house), COORDINATOR_HELLO, &hello, &outcome);
    ck_assert_int_eq(outcome.status, RPC_OK);
    outcome_clear(&outcome);
}

START_TEST(a_frame_above_every_limit_costs_its_connection_only)
{
    struct house house;
    struct stranger stranger;
    nng_msg *frame;
    house_open(&house, NULL);
    stranger_open(&stranger, &house, false);
    ck_assert_int_eq(nng_msg_alloc(&frame, (size_t)8 << 20), 0);
    stranger_send(&stranger, frame);
    nng_aio_wait(stranger.aio);
    ck_assert_int_eq(nng_aio_result(stranger.aio), NNG_ECONNRESET);
    assert_alive(&house);
    ck_assert_uint_eq(rpc_server_counters(house.server)->arrived, 1);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

START_TEST(bytes_that_are_not_even_nngs_protocol_are_dropped)
{
    struct house house;
    struct rpc_address address;
    struct pollfd fd = {.events = POLLIN};
    char byte[64];
    house_open(&house, NULL);
    ck_assert_int_eq(rpc_address_parse(house.address, &address, NULL), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(address.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd.fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd.fd, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(send(fd.fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    ssize_t got;
    do { /* NNG's greeting, then the end */
        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        got = recv(fd.fd, byte, sizeof byte, 0);
    } while (got > 0);
    close(fd.fd);
    assert_alive(&house);
    house_close(&house);
}
END_TEST

/* Requests with random bytes changed, to both sockets: every one is answered. */
START_TEST(a_thousand_changed_requests_are_all_answered)
{
    struct house house;
    struct stranger strangers[2];
    size_t count = 0;
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, submit, &count);
    stranger_open(&strangers[0], &house, false);
    stranger_open(&strangers[1], &house, true);
    Gimbal__Envelope envelope = stranger_request("Submit");
    envelope.idempotency_key = (char *)"key";
    envelope.payload =
        (ProtobufCBinaryData){12, (uint8_t *)"\x0a\x08\x0a\x01j\x12\x01u\x1a\x00\x10\x01"};
    for (uint64_t round = 0; round < 1000; round++) {
        nng_msg *frame = envelope_encode(&envelope);
        for (uint64_t i = 0; i <= random_below(3, round, 0, 3); i++) {
            unsigned char *body = nng_msg_body(frame);
            body[random_below(3, round, 2 * i + 1, nng_msg_len(frame))] =
                (unsigned char)random_bits(3, round, 2 * i + 2);
        }
        message_free(&ask(&house, &strangers[round % 2], frame)->base);
    }
    const struct rpc_counters *counters = rpc_server_counters(house.server);
    uint64_t answered = 0;
    for (size_t i = 0; i < RPC_STATUS_COUNT; i++)
        answered += counters->answered[i];
    ck_assert_uint_eq(counters->arrived, 1000);
    ck_assert_uint_eq(answered, 1000);
    ck_assert_uint_gt(counters->malformed, 50);
    ck_assert_uint_gt(count, 10);
    assert_alive(&house);
    stranger_close(&strangers[0]);
    stranger_close(&strangers[1]);
    house_close(&house);
}
END_TEST

/* A server that answers a Hello with what the test gives it. */
static void answer_hello(nng_socket mute, struct house *house, nng_msg *frame,
                         enum rpc_status status, const char *words)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct outcome outcome = {0};
    nng_msg *request_frame;
    house_start(house_stranger(house), COORDINATOR_HELLO, &hello, NULL, &outcome);
    ck_assert_int_eq(nng_recvmsg(mute, &request_frame, 0), 0);
    nng_msg_free(request_frame);
    ck_assert_int_eq(nng_sendmsg(mute, frame, 0), 0);
    house_pump(house, &outcome.done);
    ck_assert_msg(outcome.status == status, "%s", outcome.text);
    ck_assert_msg(strstr(outcome.text, words) && strstr(outcome.text, house->address), "%s",
                  outcome.text);
}

START_TEST(a_client_does_not_believe_every_answer)
{
    struct house house;
    nng_socket server;
    house_open(&house, NULL);
    house_stop(&house);
    ck_assert_int_eq(nng_rep0_open(&server), 0);
    ck_assert_int_eq(nng_listen(server, house.address, NULL, 0), 0);
    Gimbal__Envelope answer = stranger_request("");
    answer.kind = GIMBAL__ENVELOPE__KIND__REPLY;
    answer.call_id = 1;
    answer_hello(server, &house, frame_of("garbage", 7), RPC_INTERNAL, "no such message");
    answer.protocol_major++;
    answer_hello(server, &house, envelope_encode(&answer), RPC_FAILED_PRECONDITION,
                 "protocol 2.0 meets protocol 1.0");
    answer.protocol_major--;
    answer.call_id++;
    answer_hello(server, &house, envelope_encode(&answer), RPC_INTERNAL, "no answer to this call");
    answer.call_id--;
    answer.payload = (ProtobufCBinaryData){3, (uint8_t *)"\x0a\x7f\x01"};
    answer_hello(server, &house, envelope_encode(&answer), RPC_INTERNAL, "gimbal.HelloReply");
    house_close(&house);
    nng_close(server);
}
END_TEST

START_TEST(refused_frames_leave_no_memory_behind)
{
    enum { COUNT = 100, SIZE = 1 << 20 };
    struct house house;
    struct stranger stranger;
    size_t before = 0;
    house_open(&house, NULL);
    stranger_open(&stranger, &house, false);
    unsigned char *bytes = calloc(1, SIZE);
    for (size_t i = 0; i < COUNT; i++) {
        Gimbal__Envelope envelope = stranger_request("Hello");
        envelope.payload = (ProtobufCBinaryData){SIZE, bytes};
        nng_msg *frame = envelope_encode(&envelope);
        if (i % 2)
            nng_msg_chop(frame, 1);
        message_free(&ask(&house, &stranger, frame)->base);
        if (i == COUNT / 10)
            before = house_memory_bytes();
    }
    ck_assert_uint_lt(house_memory_bytes(), before + 20 * SIZE);
    free(bytes);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

static size_t peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Requests as large as may be of two-byte fields that nobody knows, and of empty submessages. */
START_TEST(a_call_costs_no_more_memory_than_its_quota)
{
    enum { SIZE = 4 << 20 };
    static const struct {
        const char *method;
        unsigned char tag;
        size_t size;
    } bombs[] = {
        {"Submit", 15 << 3, SIZE}, {"Plan", 15 << 3, SIZE}, {"ReportHardware", 82, 1 << 20}};
    struct house house;
    struct stranger stranger;
    size_t count = 0, before = peak_bytes();
    house_open(&house, NULL);
    rpc_server_handle(house.server, COORDINATOR_SUBMIT, submit, &count);
    rpc_server_handle(house.server, COORDINATOR_PLAN, submit, &count);
    rpc_server_handle(house.server, COORDINATOR_REPORT_HARDWARE, submit, &count);
    stranger_open(&stranger, &house, false);
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        Gimbal__Envelope envelope = stranger_request(bombs[i].method);
        envelope.idempotency_key = (char *)"key";
        envelope.payload.len = bombs[i].size;
        envelope.payload.data = calloc(1, bombs[i].size);
        for (size_t at = 0; at < bombs[i].size; at += 2)
            envelope.payload.data[at] = bombs[i].tag;
        ask_and_expect(&house, &stranger, envelope_encode(&envelope), RPC_RESOURCE_EXHAUSTED, "");
        free(envelope.payload.data);
    }
    ck_assert_uint_eq(count, 0);
    /* The quota counts what is asked of the allocator, which keeps its books beside it. */
    if (house_memory_bytes() > 0)
        ck_assert_uint_lt(peak_bytes() - before, message_quota(SIZE) / 2 * 3 + 6 * SIZE);
    stranger_close(&stranger);
    house_close(&house);
}
END_TEST

SUITE(rpc_hostile)
{
    const TTest *const tests[] = {
        what_is_no_request_is_answered_and_counted,
        each_wrong_request_is_told_what_is_wrong,
        a_call_on_the_wrong_port_is_refused,
        a_payload_above_its_methods_limit_is_refused_before_decoding,
        a_frame_above_every_limit_costs_its_connection_only,
        bytes_that_are_not_even_nngs_protocol_are_dropped,
        a_thousand_changed_requests_are_all_answered,
        a_client_does_not_believe_every_answer,
        refused_frames_leave_no_memory_behind,
        a_call_costs_no_more_memory_than_its_quota,
    };
    return house_run("rpc hostile", tests, sizeof tests / sizeof *tests);
}
