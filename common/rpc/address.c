/* address.c - parses addresses, and refuses to leave the machine without TLS. */
#include "common/rpc/address.h"

#include "common/rpc/protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* Parses a port, digits only. */
static int parse_port(const char *text, uint16_t *port)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != '\0' || atoi(text) > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)atoi(text);
    return 0;
}

/* The text behind the scheme; NULL if the scheme is not one of ours. */
static const char *skip_scheme(const char *text, bool *tls)
{
    static const char plain[] = "tcp://", secure[] = "tls+tcp://";
    *tls = strncmp(text, secure, strlen(secure)) == 0;
    if (*tls)
        return text + strlen(secure);
    return strncmp(text, plain, strlen(plain)) == 0 ? text + strlen(plain) : NULL;
}

int rpc_address_parse(const char *text, struct rpc_address *address, struct error *err)
{
    const char *host = skip_scheme(text, &address->tls), *colon = strrchr(text, ':');
    if (!host || colon < host || parse_port(colon + 1, &address->port) < 0)
        return error_set(err, -EINVAL,
                         "'%s' is no address: write tcp://HOST:PORT, as in tcp://127.0.0.1:7070, "
                         "or tls+tcp://HOST:PORT",
                         text);
    size_t length = (size_t)(colon - host);
    if (length == 0 || length >= sizeof address->host)
        return error_set(err, -EINVAL,
                         "'%s' names no host: write tcp://HOST:PORT or tls+tcp://HOST:PORT", text);
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    if (!address->tls && !is_loopback(address->host))
        return error_set(
            err, -EACCES,
            "'%s' is not on loopback: calls from other machines need TLS; write "
            "tls+%s and give a bundle with --tls ('gimbal cluster init' makes them), or "
            "use tcp://127.0.0.1:PORT",
            text, text);
    return 0;
}

char *rpc_address_print(char *out, size_t size, const struct rpc_address *address, uint16_t port)
{
    snprintf(out, size, "%stcp://%s:%u", address->tls ? "tls+" : "", address->host, port);
    return out;
}

int rpc_address_check_tls(const struct rpc_address *address, bool has_bundle, struct error *err)
{
    if (address->tls == has_bundle)
        return 0;
    char text[96];
    rpc_address_print(text, sizeof text, address, address->port);
    if (address->tls)
        return error_set(err, -EINVAL, "%s needs certificates: name their folder with --tls", text);
    return error_set(err, -EINVAL,
                     "%s is without TLS, but tls names a folder of certificates: write tls+%s, or "
                     "leave tls out",
                     text, text);
}

uint16_t rpc_address_offset(unsigned role)
{
    return role == RPC_USER ? 2 : role == RPC_ADMIN ? 4 : 0;
}
