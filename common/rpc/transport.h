/* transport.h - internal to rpc: frames and TLS as NNG wants them. */
#ifndef COMMON_RPC_TRANSPORT_H
#define COMMON_RPC_TRANSPORT_H

#include "common/base/error.h"
#include "common/rpc/address.h"
#include "common/rpc/protocol.h"
#include "proto/envelope.pb-c.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

/* The most bytes that a frame may have besides its payload: names, credential, status text. */
#define ENVELOPE_BYTES_MAX ((size_t)16 << 10)

/* A new frame, owned by the caller; NULL when NNG is out of memory. */
nng_msg *envelope_encode(const Gimbal__Envelope *envelope);
/* Decode a frame, which is not consumed. The caller frees *out with message_free(&(*out)->base).
 * Errors as message_unpack(). */
int envelope_decode(nng_msg *frame, Gimbal__Envelope **out, struct error *err);
/* The configuration of TLS for NNG, to be freed with nng_tls_config_free(). server_name is the host
 * we dial, NULL if we listen; in either case the other side has to show a certificate. -EINVAL when
 * one of the texts is malformed. */
int transport_tls(const struct rpc_tls *tls, const char *server_name, nng_tls_config **out,
                  struct error *err);

#endif
