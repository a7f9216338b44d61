/* stranger.c - see stranger.h. */
#include "tests/common/rpc/stranger.h"

#include "common/rpc/address.h"

#include <nng/protocol/reqrep0/req.h>

void stranger_open(struct stranger *stranger, const struct house *house, bool held)
{
    struct rpc_address address;
    char text[96];
    ck_assert_int_eq(rpc_address_parse(house->address, &address, NULL), 0);
    rpc_address_print(text, sizeof text, &address, (uint16_t)(address.port + held));
    ck_assert_int_eq(nng_req0_open(&stranger->socket), 0);
    nng_socket_set_ms(stranger->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    ck_assert_int_eq(nng_dial(stranger->socket, text, NULL, 0), 0);
    ck_assert_int_eq(nng_aio_alloc(&stranger->aio, NULL, NULL), 0);
    nng_aio_set_timeout(stranger->aio, 10000);
}

void stranger_close(struct stranger *stranger)
{
    nng_aio_free(stranger->aio);
    nng_close(stranger->socket);
}

void stranger_send(const struct stranger *stranger, nng_msg *frame)
{
    ck_assert_int_eq(nng_sendmsg(stranger->socket, frame, 0), 0);
    nng_recv_aio(stranger->socket, stranger->aio);
}

Gimbal__Envelope stranger_request(const char *method)
{
    Gimbal__Envelope envelope = GIMBAL__ENVELOPE__INIT;
    envelope.protocol_major = RPC_PROTOCOL_MAJOR;
    envelope.protocol_minor = RPC_PROTOCOL_MINOR;
    envelope.kind = GIMBAL__ENVELOPE__KIND__REQUEST;
    envelope.call_id = 5;
    envelope.method = (char *)method;
    envelope.deadline_ms = 10000;
    envelope.term = TERM;
    envelope.instance = INSTANCE;
    return envelope;
}
