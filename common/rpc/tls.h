/* tls.h - who we are to the other side of a connection, and whom we believe there. */
#ifndef COMMON_RPC_TLS_H
#define COMMON_RPC_TLS_H

#include "common/base/error.h"

struct nng_tls_config;

/* PEM, all three; lent to whom it is given for that call only. */
struct rpc_tls {
    const char *certificate, *key; /* ours */
    const char *authority;         /* signs the certificates of the other side */
};

/* Inside rpc: the same as NNG wants it, yours by nng_tls_config_free. server_name: whom we dial,
 * NULL where we listen. Either way the other side has to show a certificate. -EINVAL where one of
 * the texts is not what it should be. */
int rpc_tls_config(const struct rpc_tls *tls, const char *server_name, struct nng_tls_config **out,
                   struct error *err);

#endif
