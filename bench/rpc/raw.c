/* raw.c - a REP socket whose contexts answer from NNG's own threads, which is the fastest way to
 * use it. */
#include "bench/rpc/raw.h"

#include "bench/rpc/rpc.h"
#include "common/base/memory.h"

#include <nng/protocol/reqrep0/rep.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CONTEXT_COUNT 32

struct answerer {
    nng_ctx ctx;
    nng_aio *aio;
    bool sending;
};

static void answer(struct answerer *answerer)
{
    nng_msg *request = nng_aio_get_msg(answerer->aio), *reply;
    uint32_t size = 0;
    if (nng_msg_len(request) >= sizeof size)
        memcpy(&size, nng_msg_body(request), sizeof size);
    nng_msg_free(request);
    nng_msg_alloc(&reply, size);
    answerer->sending = true;
    nng_aio_set_msg(answerer->aio, reply);
    nng_ctx_send(answerer->ctx, answerer->aio);
}

static void progress(void *data)
{
    struct answerer *answerer = data;
    if (nng_aio_result(answerer->aio) != 0)
        return;
    if (!answerer->sending) {
        answer(answerer);
        return;
    }
    answerer->sending = false;
    nng_ctx_recv(answerer->ctx, answerer->aio);
}

int raw_serve(char *out, size_t size)
{
    nng_socket socket;
    nng_listener listener;
    int port, rc = nng_rep0_open(&socket);
    if (rc == 0)
        rc = nng_listen(socket, "tcp://127.0.0.1:0", &listener, 0);
    if (rc == 0)
        rc = nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port);
    for (int i = 0; rc == 0 && i < CONTEXT_COUNT; i++) {
        struct answerer *answerer = xcalloc(1, sizeof *answerer);
        rc = nng_ctx_open(&answerer->ctx, socket);
        if (rc == 0)
            rc = nng_aio_alloc(&answerer->aio, progress, answerer);
        if (rc == 0)
            nng_ctx_recv(answerer->ctx, answerer->aio);
    }
    if (rc == 0)
        snprintf(out, size, "tcp://127.0.0.1:%d", port);
    return rc;
}

nng_msg *raw_request(size_t size, size_t reply_size)
{
    nng_msg *request;
    uint32_t wanted = (uint32_t)reply_size;
    if (nng_msg_alloc(&request, size) != 0)
        return NULL;
    memcpy(nng_msg_body(request), &wanted, sizeof wanted);
    return request;
}

double raw_call(nng_socket socket, size_t size, size_t reply_size)
{
    double start_s = now_s();
    nng_msg *reply, *request = raw_request(size, reply_size);
    if (nng_sendmsg(socket, request, 0) != 0 || nng_recvmsg(socket, &reply, 0) != 0)
        return -1;
    double seconds = now_s() - start_s;
    nng_msg_free(reply);
    return seconds;
}
