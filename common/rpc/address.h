/* address.h - where a coordinator listens: tcp://HOST:PORT, loopback only. */
#ifndef COMMON_RPC_ADDRESS_H
#define COMMON_RPC_ADDRESS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct rpc_address {
    char host[64]; /* "127.0.0.1", "[::1]", "localhost" */
    uint16_t port; /* 0: whichever is free, to listen on */
};

/* -EINVAL for what is no tcp://HOST:PORT; -EACCES for a host that is not loopback, since
 * without TLS nobody else may call. */
int rpc_address_parse(const char *text, struct rpc_address *address, struct error *err);
/* "tcp://HOST:PORT" with that port, for NNG; writes at most size characters, returns out. */
char *rpc_address_print(char *out, size_t size, const struct rpc_address *address, uint16_t port);

#endif
