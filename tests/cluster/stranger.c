/* stranger.c - a bare REQ socket. */
#include "tests/cluster/stranger.h"

#include "common/rpc/address.h"
#include "common/rpc/transport.h"

#include <check.h>
#include <nng/protocol/reqrep0/req.h>
#include <string.h>

int stranger_ask(const char *address, uint16_t port, nng_msg *frame, Gimbal__Envelope **answer)
{
    struct rpc_address parsed;
    char text[96];
    nng_socket socket;
    nng_msg *reply = NULL;
    ck_assert_int_eq(rpc_address_parse(address, &parsed, NULL), 0);
    rpc_address_print(text, sizeof text, &parsed, port ? port : parsed.port);
    ck_assert_int_eq(nng_req0_open(&socket), 0);
    nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, 10000);
    ck_assert_int_eq(nng_dial(socket, text, NULL, 0), 0);
    ck_assert_int_eq(nng_sendmsg(socket, frame, 0), 0);
    int rc = nng_recvmsg(socket, &reply, 0);
    if (rc == 0) {
        ck_assert_int_eq(envelope_decode(reply, answer, NULL), 0);
        nng_msg_free(reply);
    }
    nng_close(socket);
    return rc;
}

nng_msg *stranger_frame(const char *bytes, size_t size)
{
    nng_msg *frame;
    ck_assert_int_eq(nng_msg_alloc(&frame, size), 0);
    memset(nng_msg_body(frame), 0, size);
    memcpy(nng_msg_body(frame), bytes, strlen(bytes));
    return frame;
}

nng_msg *stranger_hello_of_next_major(void)
{
    Gimbal__Envelope envelope = GIMBAL__ENVELOPE__INIT;
    envelope.protocol_major = RPC_PROTOCOL_MAJOR + 1;
    envelope.kind = GIMBAL__ENVELOPE__KIND__REQUEST;
    envelope.call_id = 1;
    envelope.method = (char *)"Hello";
    envelope.deadline_ms = 10000;
    return envelope_encode(&envelope);
}
