/* envelope.h - encodes and decodes the frame around a call, and checks the protocol's version. */
#ifndef COMMON_RPC_ENVELOPE_H
#define COMMON_RPC_ENVELOPE_H

#include "common/base/error.h"
#include "proto/envelope.pb-c.h"

#include <nng/nng.h>

#define RPC_PROTOCOL_MAJOR 1
#define RPC_PROTOCOL_MINOR 0

/* The most bytes that a frame may have besides its payload: names, credential, status text. */
#define ENVELOPE_BYTES_MAX ((size_t)16 << 10)

/* A new frame, owned by the caller; NULL when NNG is out of memory. */
nng_msg *envelope_encode(const Gimbal__Envelope *envelope);
/* Decode a frame, which is not consumed. The caller frees *out with message_free(&(*out)->base).
 * Errors as message_unpack(). */
int envelope_decode(nng_msg *frame, Gimbal__Envelope **out, struct error *err);
/* 0 when the major versions are equal and the minor ones at most one apart; else -ESTALE, with a
 * text that names both versions. */
int envelope_check_version(const Gimbal__Envelope *envelope, struct error *err);

#endif
