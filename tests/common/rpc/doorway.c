/* doorway.c - ports that are free, a client that waits for what it was told. */
#include "tests/common/rpc/doorway.h"

#include "common/base/clock.h"
#include "common/rpc/address.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const unsigned doorway_roles[3] = {RPC_WORKER, RPC_USER, RPC_ADMIN};
const enum signer doorway_signers[3] = {SIGNER_WORKER, SIGNER_USER, SIGNER_ADMIN};

static bool listen_for_all(struct doorway *doorway)
{
    struct error err = {""};
    int rc = 0;
    for (unsigned i = 0; i < 3 && rc == 0; i++) {
        char text[96];
        struct rpc_tls tls =
            papers_tls(&doorway->papers, &doorway->papers.server, doorway_signers[i]);
        snprintf(text, sizeof text, "tls+tcp://127.0.0.1:%u",
                 doorway->port + rpc_address_offset(doorway_roles[i]));
        rc = rpc_server_listen_tls(doorway->server, doorway_roles[i], text, &tls, &err);
    }
    ck_assert_msg(rc == 0 || rc == -EADDRINUSE, "%s", err.text);
    if (rc < 0)
        rpc_server_unlisten(doorway->server);
    return rc == 0;
}

void doorway_open(struct doorway *doorway)
{
    struct rpc_server_options options = house_options();
    struct error err = {""};
    *doorway = (struct doorway){0};
    papers_init(&doorway->papers);
    ck_assert_msg(rpc_server_create(&options, &doorway->server, &err) == 0, "%s", err.text);
    rpc_server_handle(doorway->server, COORDINATOR_HELLO, rpc_hello, NULL);
    for (unsigned attempt = 0; attempt < 50; attempt++) {
        doorway->port =
            (uint16_t)(20000 + ((unsigned)getpid() * RPC_TLS_PORTS + attempt * 606) % 12000);
        if (listen_for_all(doorway))
            break;
        ck_assert_uint_lt(attempt, 49);
    }
    snprintf(doorway->address, sizeof doorway->address, "%s",
             rpc_server_address(doorway->server, 0));
}

void doorway_close(struct doorway *doorway)
{
    rpc_server_destroy(doorway->server);
    papers_finish(&doorway->papers);
}

int doorway_dial(struct doorway *doorway, unsigned role, const struct certificate *own,
                 struct rpc_client **client, struct error *err)
{
    struct rpc_tls tls = papers_tls(&doorway->papers, own, SIGNER_SERVER);
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = doorway->address,
                                         .tls = &tls,
                                         .role = role,
                                         .caller = "node-a",
                                         .fail_fast = true};
    return rpc_client_open(&options, client, err);
}

static void note(void *data, const struct rpc_result *result)
{
    enum rpc_status *status = data;
    *status = result->status;
}

void doorway_expect_answer(struct doorway *doorway, struct rpc_client *client)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = PATIENCE_MS};
    enum rpc_status status = RPC_STATUS_COUNT;
    uint64_t arrived = rpc_server_counters(doorway->server)->arrived;
    rpc_client_start(client, COORDINATOR_HELLO, &hello.base, &options, note, &status);
    for (uint64_t begin = clock_ms(); rpc_server_counters(doorway->server)->arrived == arrived;) {
        ck_assert_uint_lt(clock_ms() - begin, PATIENCE_MS);
        rpc_server_poll(doorway->server, PATIENCE_MS); /* a connection that goes wakes it too */
    }
    while (status == RPC_STATUS_COUNT)
        rpc_client_poll(client, PATIENCE_MS);
    ck_assert_int_eq(status, RPC_OK);
}

void doorway_expect_served(struct doorway *doorway, unsigned index)
{
    struct certificate own =
        papers_client(&doorway->papers, doorway_signers[index], -HOUR_S, HOUR_S);
    struct rpc_client *client;
    struct error err = {""};
    ck_assert_msg(doorway_dial(doorway, doorway_roles[index], &own, &client, &err) == 0, "%s",
                  err.text);
    doorway_expect_answer(doorway, client);
    rpc_client_close(client);
    certificate_finish(&own);
}

/* NNG counts on a thread of its own, and says to nobody that it has. */
void doorway_await_refused(const struct doorway *doorway)
{
    for (unsigned waited_ms = 0; rpc_server_handshakes_refused(doorway->server) == 0; waited_ms++) {
        ck_assert_uint_lt(waited_ms, PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}
