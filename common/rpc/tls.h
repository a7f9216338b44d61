/* tls.h - the certificate we show to the other side of a connection, and the authority we trust. */
#ifndef COMMON_RPC_TLS_H
#define COMMON_RPC_TLS_H

#include "common/base/error.h"

struct nng_tls_config;

/* All three are PEM texts, borrowed for the duration of the call they are passed to. */
struct rpc_tls {
    const char *certificate, *key; /* ours */
    const char *authority;         /* has signed the certificates of the other side */
};

/* Internal to rpc: the configuration for NNG, to be freed with nng_tls_config_free(). server_name
 * is the host we dial, NULL if we listen; in either case the other side has to show a certificate.
 * -EINVAL when one of the texts is malformed. */
int rpc_tls_config(const struct rpc_tls *tls, const char *server_name, struct nng_tls_config **out,
                   struct error *err);

#endif
