/* raw.h - the yardstick: bare NNG REQ and REP sockets, with frames of the size of our calls. */
#ifndef BENCH_RPC_RAW_H
#define BENCH_RPC_RAW_H

#include <nng/nng.h>
#include <stddef.h>

/* What our envelope adds to a payload, approximately. */
#define RAW_ENVELOPE_BYTES 80

/* Start a server on a free port. It answers on NNG's threads, with as many contexts as our server
 * has, and with frames of the size that each request asks for. *out becomes its address. Returns 0
 * or an error of NNG. */
int raw_serve(char *out, size_t size);
/* A frame of `size` bytes that asks for an answer of `reply_size` bytes. */
nng_msg *raw_request(size_t size, size_t reply_size);
/* Send such a frame and wait for the answer. Returns the seconds that took, or -1. */
double raw_call(nng_socket socket, size_t size, size_t reply_size);

#endif
