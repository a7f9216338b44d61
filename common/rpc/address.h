/* address.h - where a coordinator listens: tcp://HOST:PORT, loopback only, or
 * tls+tcp://HOST:PORT.
 *
 * With TLS a coordinator listens three times, since a connection's role is that of the listener
 * it came in by: workers at PORT, users two above and administrators four above, and one above
 * each of these for held calls. So everybody is told one address, and finds its own port. */
#ifndef COMMON_RPC_ADDRESS_H
#define COMMON_RPC_ADDRESS_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many ports a coordinator with TLS takes. */
#define RPC_TLS_PORTS 6

struct rpc_address {
    bool tls;
    char host[64]; /* "127.0.0.1", "[::1]", "localhost" */
    uint16_t port; /* 0: whichever is free, to listen on */
};

/* -EINVAL for what is no such address; -EACCES for tcp:// and a host that is not loopback, since
 * without TLS nobody else may call. */
int rpc_address_parse(const char *text, struct rpc_address *address, struct error *err);
/* "tcp://HOST:PORT" with that port, for NNG; writes at most size characters, returns out. */
char *rpc_address_print(char *out, size_t size, const struct rpc_address *address, uint16_t port);

/* -EINVAL in words where the address wants TLS and there is no bundle for it, or has none and there
 * is one: nobody who set up TLS shall talk in the clear by a slip. */
int rpc_address_check_tls(const struct rpc_address *address, bool has_bundle, struct error *err);
/* How far above PORT the listener of the role is, with TLS; role is one of enum rpc_role. */
uint16_t rpc_address_offset(unsigned role);

#endif
