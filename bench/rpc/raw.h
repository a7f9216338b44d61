/* raw.h - the yardstick: NNG's REQ and REP alone, with frames as large as those of our calls. */
#ifndef BENCH_RPC_RAW_H
#define BENCH_RPC_RAW_H

#include <nng/nng.h>
#include <stddef.h>

/* What our envelope adds to a payload, about. */
#define RAW_ENVELOPE_BYTES 80

/* Answer at a free port from now on, on NNG's threads, with as many contexts as our server has,
 * frames as large as the request asks for. The address into out; NNG's error. */
int raw_serve(char *out, size_t size);
/* A frame of so many bytes that asks for an answer of so many. */
nng_msg *raw_request(size_t size, size_t reply_size);
/* Send one, wait for its answer; seconds, or -1. */
double raw_call(nng_socket socket, size_t size, size_t reply_size);

#endif
