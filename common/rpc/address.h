/* address.h - the address of a coordinator: tcp://HOST:PORT, on loopback only, or
 * tls+tcp://HOST:PORT; and the certificates by which both sides know each other there.
 *
 * With TLS a coordinator has three listeners, because the role of a caller is told by the listener
 * it came in by: workers at PORT, users at PORT + 2, administrators at PORT + 4, and held calls of
 * each at one port above. So everybody is given the same address and finds its own port. */
#ifndef COMMON_RPC_ADDRESS_H
#define COMMON_RPC_ADDRESS_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many consecutive ports a coordinator with TLS takes. */
#define RPC_TLS_PORTS 6

struct rpc_address {
    bool tls;
    char host[64]; /* "127.0.0.1", "[::1]", "localhost" */
    uint16_t port; /* 0: listen on any free port */
};

/* -EINVAL when the text is not such an address; -EACCES for tcp:// with a host that is not
 * loopback, since without TLS nobody from another machine may call. */
int rpc_address_parse(const char *text, struct rpc_address *address, struct error *err);
/* Format for NNG, with this port in place of the address's. Writes at most `size` bytes; returns
 * `out`. */
char *rpc_address_print(char *out, size_t size, const struct rpc_address *address, uint16_t port);

/* -EINVAL when the address wants TLS and there is no bundle (trust/bundle.h), or the other way
 * round: nobody who has set up TLS should talk in the clear by mistake. */
int rpc_address_check_tls(const struct rpc_address *address, bool has_bundle, struct error *err);
/* With TLS: how far above PORT the listener for this role (one of enum rpc_role) is. */
uint16_t rpc_address_offset(unsigned role);

/* The certificate we show to the other side of a connection, and the authority we trust. All three
 * are PEM texts, borrowed for the duration of the call they are passed to. */
struct rpc_tls {
    const char *certificate, *key; /* ours */
    const char *authority;         /* has signed the certificates of the other side */
};

#endif
