/* fixture.c - one poll over all eventfds, and everything that was raised is run. */
#include "tests/common/rpc/fixture.h"

#include "common/base/clock.h"
#include "common/message/message.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 10000

/* NNG frees closed connections on a thread of its own, and LeakSanitizer, when a test ends before
 * that, takes them for leaks. Lost frames are found by tests that count memory. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

_Atomic uint64_t house_now_ms = 1000000;

uint64_t house_clock(void)
{
    return house_now_ms;
}

static uint64_t calendar(void)
{
    return UNIX_MS;
}

struct rpc_server_options house_options(void)
{
    return (struct rpc_server_options){.service = &service_coordinator,
                                       .term = TERM,
                                       .instance = INSTANCE,
                                       .release = "0.1.0",
                                       .calendar_cb = calendar};
}

size_t house_memory_bytes(void)
{
    return mallinfo2().uordblks;
}

/* A server at this address; false when a port of it is taken. */
static bool serve(struct house *house, const struct rpc_server_options *options,
                  const char *address)
{
    struct error err = {""};
    ck_assert_msg(rpc_server_create(options, &house->server, &err) == 0, "%s", err.text);
    rpc_server_handle(house->server, COORDINATOR_HELLO, rpc_hello, NULL);
    int rc = rpc_server_listen(house->server, RPC_EVERYBODY, address, &err);
    ck_assert_msg(rc == 0 || rc == -EADDRINUSE, "%s", err.text);
    return rc == 0;
}

void house_open(struct house *house, const struct rpc_server_options *options)
{
    struct rpc_server_options standard = house_options();
    *house = (struct house){0};
    /* Below the ports that the system hands out, so that nobody takes them during a restart. */
    for (unsigned attempt = 0; attempt < 50; attempt++) {
        unsigned port = 20000 + ((unsigned)getpid() * 2 + attempt * 202) % 12000;
        snprintf(house->address, sizeof house->address, "tcp://127.0.0.1:%u", port);
        if (serve(house, options ? options : &standard, house->address))
            return;
        house_stop(house);
    }
    ck_abort_msg("no two neighbouring ports are free");
}

void house_stop(struct house *house)
{
    rpc_server_destroy(house->server);
    house->server = NULL;
}

void house_restart(struct house *house, const struct rpc_server_options *options)
{
    struct rpc_server_options standard = house_options();
    ck_assert(serve(house, options ? options : &standard, house->address));
}

struct rpc_client *house_stranger(struct house *house)
{
    struct error err = {""};
    struct rpc_client_options options = {
        .service = &service_coordinator, .address = house->address, .caller = "node-a"};
    ck_assert_uint_lt(house->client_count, 4);
    struct rpc_client **client = &house->clients[house->client_count++];
    ck_assert_msg(rpc_client_open(&options, client, &err) == 0, "%s", err.text);
    return *client;
}

struct rpc_client *house_client(struct house *house)
{
    struct rpc_client *client = house_stranger(house);
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct outcome outcome = {0};
    house_call(house, client, COORDINATOR_HELLO, &hello, &outcome);
    ck_assert_msg(outcome.status == RPC_OK, "%s", outcome.text);
    outcome_clear(&outcome);
    return client;
}

void house_close_client(struct house *house, struct rpc_client *client)
{
    for (size_t i = 0; i < house->client_count; i++)
        if (house->clients[i] == client)
            house->clients[i] = house->clients[--house->client_count];
    rpc_client_close(client);
}

void house_close(struct house *house)
{
    while (house->client_count > 0)
        rpc_client_close(house->clients[--house->client_count]);
    house_stop(house);
}

void house_pump_once(struct house *house)
{
    struct pollfd fds[5];
    nfds_t count = 0;
    int timeout = PATIENCE_MS, due = house->server ? rpc_server_timeout_ms(house->server) : -1;
    if (house->server)
        fds[count++] = (struct pollfd){.fd = rpc_server_fd(house->server), .events = POLLIN};
    for (size_t i = 0; i < house->client_count; i++)
        fds[count++] = (struct pollfd){.fd = rpc_client_fd(house->clients[i]), .events = POLLIN};
    bool is_due = due >= 0 && due < timeout;
    int ready = poll(fds, count, is_due ? due : timeout);
    ck_assert_msg(ready > 0 || is_due, "nothing has happened for ten seconds");
    if (house->server)
        rpc_server_poll(house->server, 0);
    for (size_t i = 0; i < house->client_count; i++)
        rpc_client_poll(house->clients[i], 0);
}

/* Calls of these tests have ten seconds at most: what has not happened after twice that is lost. */
static uint64_t lost_ms(void)
{
    return clock_ms() + 2 * PATIENCE_MS;
}

void house_pump(struct house *house, const bool *flag)
{
    for (uint64_t until_ms = lost_ms(); !*flag; house_pump_once(house))
        ck_assert_msg(clock_ms() < until_ms, "what was waited for has not come in 20 s");
}

void house_pump_count(struct house *house, const size_t *count, size_t least)
{
    for (uint64_t until_ms = lost_ms(); *count < least; house_pump_once(house))
        ck_assert_msg(clock_ms() < until_ms, "in 20 s %zu have come, not %zu", *count, least);
}

void house_pump_held(struct house *house, size_t count)
{
    for (uint64_t until_ms = lost_ms(); rpc_server_held_count(house->server) != count;
         house_pump_once(house))
        ck_assert_msg(clock_ms() < until_ms, "after 20 s %zu calls are parked, not %zu",
                      rpc_server_held_count(house->server), count);
}

static void finished(void *data, const struct rpc_result *result)
{
    struct outcome *outcome = data;
    ck_assert(!outcome->done);
    outcome->done = true;
    outcome->status = result->status;
    snprintf(outcome->text, sizeof outcome->text, "%s", result->text);
    ck_assert((result->status == RPC_OK) == (result->reply != NULL));
    if (!result->reply)
        return;
    const ProtobufCMessage *reply = result->reply;
    size_t size;
    void *bytes = message_pack(reply, &size);
    ck_assert_int_eq(
        message_unpack(reply->descriptor, bytes, size, message_quota(size), &outcome->reply, NULL),
        0);
    free(bytes);
}

struct rpc_pending *house_start(struct rpc_client *client, unsigned method, const void *request,
                                const struct rpc_call_options *options, struct outcome *outcome)
{
    struct rpc_call_options standard = {.deadline_ms = 10000};
    return rpc_client_start(client, method, request, options ? options : &standard, finished,
                            outcome);
}

void house_call(struct house *house, struct rpc_client *client, unsigned method,
                const void *request, struct outcome *outcome)
{
    house_start(client, method, request, NULL, outcome);
    house_pump(house, &outcome->done);
}

void outcome_clear(struct outcome *outcome)
{
    message_free(outcome->reply);
    *outcome = (struct outcome){0};
}

int house_run(const char *name, const TTest *const *tests, size_t count)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 30);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    return suite_run(name, tcase, NULL);
}
