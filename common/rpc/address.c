/* address.c - reading an address, and refusing to leave the machine. */
#include "common/rpc/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
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

/* The text after the last ':', digits only. */
static int parse_port(const char *text, uint16_t *port)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != '\0' || atoi(text) > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)atoi(text);
    return 0;
}

int rpc_address_parse(const char *text, struct rpc_address *address, struct error *err)
{
    static const char scheme[] = "tcp://";
    const char *host = text + strlen(scheme), *colon = strrchr(text, ':');
    if (strncmp(text, scheme, strlen(scheme)) != 0 || colon < host ||
        parse_port(colon + 1, &address->port) < 0)
        return error_set(err, -EINVAL,
                         "'%s' is no address: write tcp://HOST:PORT, as in tcp://127.0.0.1:7070",
                         text);
    size_t length = (size_t)(colon - host);
    if (length == 0 || length >= sizeof address->host)
        return error_set(err, -EINVAL, "'%s' names no host: write tcp://HOST:PORT", text);
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    if (!is_loopback(address->host))
        return error_set(err, -EACCES,
                         "'%s' is not on loopback: calls from other machines need TLS; use "
                         "tcp://127.0.0.1:PORT",
                         text);
    return 0;
}

char *rpc_address_print(char *out, size_t size, const struct rpc_address *address, uint16_t port)
{
    snprintf(out, size, "tcp://%s:%u", address->host, port);
    return out;
}
