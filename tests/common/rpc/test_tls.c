/* test_tls.c - who gets past a listener with TLS, and who does not: over real sockets, and of
 * those who do not, nothing reaches a decoder. */
#include "tests/common/rpc/doorway.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The client cannot even connect, and the server has counted it and decoded nothing. */
static void assert_turned_away(struct doorway *doorway, unsigned role,
                               const struct certificate *own)
{
    struct rpc_client *client;
    struct error err = {""};
    int rc = doorway_dial(doorway, role, own, &client, &err);
    ck_assert_msg(rc == -EACCES, "%d: %s", rc, err.text);
    ck_assert_msg(strstr(err.text, "no TLS with") != NULL, "%s", err.text);
    doorway_await_refused(doorway);
    ck_assert_uint_eq(rpc_server_counters(doorway->server)->arrived, 0);
}

START_TEST(each_role_is_served_at_its_own_port)
{
    struct doorway doorway;
    doorway_open(&doorway);
    for (unsigned i = 0; i < 3; i++)
        doorway_expect_served(&doorway, i);
    ck_assert_uint_eq(rpc_server_handshakes_refused(doorway.server), 0);
    doorway_close(&doorway);
}
END_TEST

/* Three roles at the two ports of the others each. */
START_TEST(a_certificate_of_one_role_opens_no_other_port)
{
    struct doorway doorway;
    unsigned of = (unsigned)_i / 2, at = (of + 1 + (unsigned)_i % 2) % 3;
    doorway_open(&doorway);
    struct certificate own = papers_client(&doorway.papers, doorway_signers[of], -HOUR_S, HOUR_S);
    assert_turned_away(&doorway, doorway_roles[at], &own);
    doorway_expect_served(&doorway, at);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

static const struct {
    enum signer signer;
    int begin_s, end_s;
} wrong_clients[] = {
    {SIGNER_STRANGER, -HOUR_S, HOUR_S},    /* an authority that nobody knows */
    {SIGNER_SERVER, -HOUR_S, HOUR_S},      /* the one that vouches for the server */
    {SIGNER_WORKER, -2 * HOUR_S, -HOUR_S}, /* expired */
    {SIGNER_WORKER, HOUR_S, 2 * HOUR_S},   /* not yet valid */
};

START_TEST(a_certificate_that_is_not_to_be_believed_opens_nothing)
{
    struct doorway doorway;
    doorway_open(&doorway);
    struct certificate own = papers_client(&doorway.papers, wrong_clients[_i].signer,
                                           wrong_clients[_i].begin_s, wrong_clients[_i].end_s);
    assert_turned_away(&doorway, RPC_WORKER, &own);
    doorway_expect_served(&doorway, 0);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

/* The coordinator's own key, should it be stolen, makes nobody a worker. */
START_TEST(a_servers_certificate_makes_no_client)
{
    struct doorway doorway;
    doorway_open(&doorway);
    struct certificate own =
        papers_server(&doorway.papers, SIGNER_WORKER, "127.0.0.1", -HOUR_S, HOUR_S);
    assert_turned_away(&doorway, RPC_WORKER, &own);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

/* Dial by NNG alone; its error. */
static int dial_bare(const char *address, nng_tls_config *config)
{
    nng_socket socket;
    nng_dialer dialer;
    ck_assert_int_eq(nng_req0_open(&socket), 0);
    ck_assert_int_eq(nng_dialer_create(&dialer, socket, address), 0);
    if (config)
        ck_assert_int_eq(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config), 0);
    int rc = nng_dialer_start(dialer, 0);
    nng_close(socket);
    return rc;
}

START_TEST(no_certificate_opens_nothing)
{
    struct doorway doorway;
    nng_tls_config *config;
    doorway_open(&doorway);
    ck_assert_int_eq(nng_tls_config_alloc(&config, NNG_TLS_MODE_CLIENT), 0);
    nng_tls_config_ca_chain(config, doorway.papers.authorities[SIGNER_SERVER].text, NULL);
    nng_tls_config_server_name(config, "127.0.0.1");
    ck_assert_int_ne(dial_bare(doorway.address, config), 0);
    doorway_await_refused(&doorway);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 0);
    doorway_expect_served(&doorway, 0);
    nng_tls_config_free(config);
    doorway_close(&doorway);
}
END_TEST

START_TEST(plain_text_at_a_port_with_tls_opens_nothing)
{
    struct doorway doorway;
    char address[96];
    struct error err = {""};
    struct rpc_client *client;
    doorway_open(&doorway);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", doorway.port);
    struct rpc_client_options options = {
        .service = &service_coordinator, .address = address, .caller = "node-a", .fail_fast = true};
    ck_assert_int_eq(rpc_client_open(&options, &client, &err), -EHOSTDOWN);
    ck_assert_msg(strstr(err.text, "perhaps it listens with TLS") != NULL, "%s", err.text);
    doorway_await_refused(&doorway);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 0);
    doorway_expect_served(&doorway, 0);
    doorway_close(&doorway);
}
END_TEST

START_TEST(tls_at_a_port_without_is_refused_by_both)
{
    struct house house;
    struct doorway doorway = {.server = NULL};
    struct rpc_client *client;
    struct error err = {""};
    house_open(&house, NULL);
    papers_init(&doorway.papers);
    struct certificate own = papers_client(&doorway.papers, SIGNER_WORKER, -HOUR_S, HOUR_S);
    snprintf(doorway.address, sizeof doorway.address, "tls+%s", house.address);
    ck_assert_int_eq(doorway_dial(&doorway, RPC_WORKER, &own, &client, &err), -EACCES);
    ck_assert_msg(strstr(err.text, "no TLS with") != NULL, "%s", err.text);
    ck_assert_uint_eq(rpc_server_counters(house.server)->arrived, 0);
    struct rpc_client *right = house_client(&house);
    house_close_client(&house, right);
    certificate_finish(&own);
    papers_finish(&doorway.papers);
    house_close(&house);
}
END_TEST

static const struct {
    enum signer signer;
    const char *host;
    int begin_s, end_s;
} wrong_servers[] = {
    {SIGNER_STRANGER, "127.0.0.1", -HOUR_S, HOUR_S}, /* signed by itself, so to speak */
    {SIGNER_WORKER, "127.0.0.1", -HOUR_S, HOUR_S},   /* a worker that plays the coordinator */
    {SIGNER_SERVER, "head.example.org", -HOUR_S, HOUR_S},
    {SIGNER_SERVER, "127.0.0.1", -2 * HOUR_S, -HOUR_S},
};

/* A server that is none, and a right client. */
START_TEST(a_server_that_is_not_to_be_believed_is_not_called)
{
    struct doorway doorway;
    struct error err = {""};
    struct rpc_client *client;
    doorway_open(&doorway);
    rpc_server_unlisten(doorway.server);
    struct certificate wrong =
        papers_server(&doorway.papers, wrong_servers[_i].signer, wrong_servers[_i].host,
                      wrong_servers[_i].begin_s, wrong_servers[_i].end_s);
    struct rpc_tls tls = papers_tls(&doorway.papers, &wrong, SIGNER_WORKER);
    ck_assert_msg(
        rpc_server_listen_tls(doorway.server, RPC_WORKER, "tls+tcp://127.0.0.1:0", &tls, &err) == 0,
        "%s", err.text);
    snprintf(doorway.address, sizeof doorway.address, "%s", rpc_server_address(doorway.server, 0));
    struct certificate own = papers_client(&doorway.papers, SIGNER_WORKER, -HOUR_S, HOUR_S);
    ck_assert_int_eq(doorway_dial(&doorway, RPC_WORKER, &own, &client, &err), -EACCES);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 0);
    certificate_finish(&own);
    certificate_finish(&wrong);
    doorway_close(&doorway);
}
END_TEST

START_TEST(tls_is_neither_left_out_nor_added_by_a_slip)
{
    struct doorway doorway;
    struct error err;
    struct rpc_client *client;
    doorway_open(&doorway);
    struct rpc_tls tls = papers_tls(&doorway.papers, &doorway.papers.server, SIGNER_SERVER);
    struct rpc_client_options options = {
        .service = &service_coordinator, .address = doorway.address, .caller = "node-a"};
    ck_assert_int_eq(rpc_client_open(&options, &client, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "needs certificates"));
    options.address = "tcp://127.0.0.1:7070";
    options.tls = &tls;
    ck_assert_int_eq(rpc_client_open(&options, &client, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "write tls+tcp://127.0.0.1:7070"));
    ck_assert_int_eq(rpc_server_listen(doorway.server, RPC_WORKER, "tls+tcp://127.0.0.1:0", &err),
                     -EINVAL);
    doorway_close(&doorway);
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

SUITE(rpc_tls)
{
    TCase *tls = tcase_create("tls");
    tcase_set_timeout(tls, 30);
    tcase_add_test(tls, each_role_is_served_at_its_own_port);
    tcase_add_loop_test(tls, a_certificate_of_one_role_opens_no_other_port, 0, 6);
    tcase_add_loop_test(tls, a_certificate_that_is_not_to_be_believed_opens_nothing, 0,
                        COUNT(wrong_clients));
    tcase_add_test(tls, a_servers_certificate_makes_no_client);
    tcase_add_test(tls, no_certificate_opens_nothing);
    tcase_add_test(tls, plain_text_at_a_port_with_tls_opens_nothing);
    tcase_add_test(tls, tls_at_a_port_without_is_refused_by_both);
    tcase_add_loop_test(tls, a_server_that_is_not_to_be_believed_is_not_called, 0,
                        COUNT(wrong_servers));
    tcase_add_test(tls, tls_is_neither_left_out_nor_added_by_a_slip);
    return suite_run("rpc tls", tls, NULL);
}
