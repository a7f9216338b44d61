/* test_handshakes.c - connections that do to a listener with TLS what no client of ours does:
 * others are served as before, and nothing reaches a decoder. */
#include "tests/common/rpc/doorway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_raw(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Until the server has hung up; what it said before, an alert, does not matter. */
static void await_hangup(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char bytes[512];
    ssize_t got = 1;
    while (got > 0) {
        ck_assert_int_eq(poll(&wait, 1, PATIENCE_MS), 1);
        got = read(fd, bytes, sizeof bytes);
    }
}

/* The beginning of a handshake that is right so far: a record with a ClientHello of 512 bytes. */
static const unsigned char client_hello[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00,
                                             0x01, 0xfc, 0x03, 0x03, 0xaa, 0xbb};

START_TEST(garbage_in_place_of_a_handshake_is_hung_up_on)
{
    static const char bytes[][40] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                     "\x16\x03\x03\xff\xff garbage of a length that is none",
                                     "\x15\x03\x03\x00\x02\x02\x28 an alert comes first"};
    struct doorway doorway;
    doorway_open(&doorway);
    int fd = connect_raw(doorway.port);
    ck_assert_int_eq(write(fd, bytes[_i], sizeof bytes[_i]), sizeof bytes[_i]);
    await_hangup(fd);
    close(fd);
    doorway_await_refused(&doorway);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 0);
    doorway_expect_served(&doorway, 0);
    doorway_close(&doorway);
}
END_TEST

START_TEST(a_handshake_that_is_cut_off_harms_nobody)
{
    struct doorway doorway;
    doorway_open(&doorway);
    for (unsigned i = 0; i < 20; i++) {
        int fd = connect_raw(doorway.port);
        ck_assert_int_eq(write(fd, client_hello, 5 + i % 9), 5 + i % 9);
        if (i % 2) { /* or without a word of farewell */
            struct linger none = {.l_onoff = 1};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        }
        close(fd);
    }
    doorway_expect_served(&doorway, 0);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived,
                      1); /* the one that was served */
    doorway_close(&doorway);
}
END_TEST

/* Clients with all the right papers, that hang up at any moment of the handshake: NNG's own
 * listener accepts nobody any more after a dozen of them. */
START_TEST(clients_that_hang_up_in_their_handshake_end_no_listener)
{
    enum { MANY = 60 };
    struct doorway doorway;
    nng_tls_config *config;
    struct error err;
    doorway_open(&doorway);
    struct certificate own = papers_client(&doorway.papers, SIGNER_WORKER, -HOUR_S, HOUR_S);
    struct rpc_tls tls = papers_tls(&doorway.papers, &own, SIGNER_SERVER);
    ck_assert_int_eq(transport_tls(&tls, "127.0.0.1", &config, &err), 0);
    for (int i = 0; i < MANY; i++) {
        nng_socket socket;
        nng_dialer dialer;
        ck_assert_int_eq(nng_req0_open(&socket), 0);
        ck_assert_int_eq(nng_dialer_create(&dialer, socket, doorway.address), 0);
        ck_assert_int_eq(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config), 0);
        ck_assert_int_eq(nng_dialer_start(dialer, NNG_FLAG_NONBLOCK), 0);
        poll(NULL, 0, i % 30); /* a handshake takes about so long */
        nng_close(socket);
        if (i % 4 == 3)
            doorway_expect_served(&doorway, 0);
    }
    nng_tls_config_free(config);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

START_TEST(many_handshakes_that_never_end_keep_nobody_waiting)
{
    enum { MANY = 200 };
    struct doorway doorway;
    int fds[MANY];
    doorway_open(&doorway);
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = connect_raw(doorway.port);
        if (i % 2)
            ck_assert_int_eq(write(fds[i], client_hello, sizeof client_hello), sizeof client_hello);
    }
    for (unsigned i = 0; i < 3; i++)
        doorway_expect_served(&doorway, i);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 3);
    /* Nobody waits for them for ever, and who has finished is left alone. */
    struct certificate own = papers_client(&doorway.papers, SIGNER_WORKER, -HOUR_S, HOUR_S);
    struct rpc_client *client;
    struct error err = {""};
    ck_assert_msg(doorway_dial(&doorway, RPC_WORKER, &own, &client, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(rpc_server_end_handshakes(doorway.server, HOUR_S * 1000), 0);
    ck_assert_uint_eq(rpc_server_end_handshakes(doorway.server, 0), MANY);
    for (size_t i = 0; i < MANY; i++) {
        await_hangup(fds[i]);
        close(fds[i]);
    }
    doorway_expect_answer(&doorway, client);
    rpc_client_close(client);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

/* Verified by TLS and not yet by its credential: it cannot make us keep what is too large. */
START_TEST(an_oversize_frame_costs_its_connection_before_a_byte_is_decoded)
{
    struct doorway doorway;
    nng_socket socket;
    nng_dialer dialer;
    nng_tls_config *config;
    nng_msg *frame, *answer;
    struct error err;
    doorway_open(&doorway);
    struct certificate own = papers_client(&doorway.papers, SIGNER_WORKER, -HOUR_S, HOUR_S);
    struct rpc_tls tls = papers_tls(&doorway.papers, &own, SIGNER_SERVER);
    ck_assert_int_eq(transport_tls(&tls, "127.0.0.1", &config, &err), 0);
    ck_assert_int_eq(nng_req0_open(&socket), 0);
    nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, PATIENCE_MS);
    ck_assert_int_eq(nng_dialer_create(&dialer, socket, doorway.address), 0);
    ck_assert_int_eq(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config), 0);
    ck_assert_int_eq(nng_dialer_start(dialer, 0), 0);
    ck_assert_int_eq(nng_msg_alloc(&frame, (size_t)16 << 20), 0);
    ck_assert_int_eq(nng_sendmsg(socket, frame, 0), 0);
    ck_assert_int_eq(nng_recvmsg(socket, &answer, 0), NNG_ECONNRESET);
    nng_close(socket);
    nng_tls_config_free(config);
    ck_assert_uint_eq(rpc_server_counters(doorway.server)->arrived, 0);
    doorway_expect_served(&doorway, 0);
    certificate_finish(&own);
    doorway_close(&doorway);
}
END_TEST

SUITE(rpc_handshakes)
{
    TCase *tcase = tcase_create("handshakes");
    tcase_set_timeout(tcase, 30);
    tcase_add_loop_test(tcase, garbage_in_place_of_a_handshake_is_hung_up_on, 0, 3);
    tcase_add_test(tcase, a_handshake_that_is_cut_off_harms_nobody);
    tcase_add_test(tcase, clients_that_hang_up_in_their_handshake_end_no_listener);
    tcase_add_test(tcase, many_handshakes_that_never_end_keep_nobody_waiting);
    tcase_add_test(tcase, an_oversize_frame_costs_its_connection_before_a_byte_is_decoded);
    return suite_run("rpc handshakes", tcase, NULL);
}
