/* envelope.h - the frame around a call: to and from NNG messages, and the protocol's version. */
#ifndef COMMON_RPC_ENVELOPE_H
#define COMMON_RPC_ENVELOPE_H

#include "common/base/error.h"
#include "proto/envelope.pb-c.h"

#include <nng/nng.h>

#define RPC_PROTOCOL_MAJOR 1
#define RPC_PROTOCOL_MINOR 0

/* What a frame may weigh beside its payload: names, credential, status text. */
#define ENVELOPE_BYTES_MAX ((size_t)16 << 10)

/* A frame, yours; NULL when NNG has no memory for it. */
nng_msg *envelope_encode(const Gimbal__Envelope *envelope);
/* *out is yours, to be freed with message_free(&(*out)->base). Does not consume the frame.
 * Errors as those of message_unpack. */
int envelope_decode(nng_msg *frame, Gimbal__Envelope **out, struct error *err);
/* Same major version, and minor versions at most one apart; else -ESTALE, naming both. */
int envelope_check_version(const Gimbal__Envelope *envelope, struct error *err);

#endif
