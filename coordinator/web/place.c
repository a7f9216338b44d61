/* place.c - where pages are served: HOST:PORT, unencrypted on loopback only. */
#include "coordinator/web/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

int web_place_parse(const char *text, struct rpc_address *address, struct error *err)
{
    struct error ignored;
    char *plain = xasprintf("tcp://%s", text), *secure = xasprintf("tls+%s", plain);
    int rc = rpc_address_parse(plain, address, &ignored);
    if (rc == -EACCES)
        rc = rpc_address_parse(secure, address, &ignored);
    free(secure);
    free(plain);
    if (rc < 0 || strchr(text, '/'))
        return error_set(err, -EINVAL, "'%s' is no HOST:PORT, as in 127.0.0.1:7079", text);
    return 0;
}

int web_check(const char *text, bool has_bundle, bool has_token, struct error *err)
{
    struct rpc_address address;
    int rc = web_place_parse(text, &address, err);
    if (rc < 0 || !address.tls)
        return rc;
    if (!has_bundle)
        return error_set(err, -EINVAL,
                         "%s is not on loopback: other machines are served over TLS only; name a "
                         "folder of certificates with --tls, or write 127.0.0.1:%u",
                         text, address.port);
    if (!has_token)
        return error_set(err, -EINVAL,
                         "%s is not on loopback: whoever reads there has to show a token; name a "
                         "file that has it by http_token",
                         text);
    return 0;
}

/* Without the brackets around a numeric IPv6 address. */
static char *bare_host(const struct rpc_address *address)
{
    char *host = xstrdup(address->host);
    size_t length = strlen(host);
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        memmove(host, host + 1, length - 1);
    }
    return host;
}

/* A descriptor, or a negative errno without a message. */
static int listen_at(const struct addrinfo *place)
{
    const int on = 1;
    int fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, place->ai_addr, place->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static int port_of(int fd, uint16_t *port)
{
    struct sockaddr_in6 bound = {0}; /* large enough for IPv4 addresses too */
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) < 0)
        return -errno;
    const struct sockaddr_in *v4 = (const void *)&bound;
    *port = ntohs(bound.sin6_family == AF_INET6 ? bound.sin6_port : v4->sin_port);
    return 0;
}

int web_place_listen(const struct rpc_address *address, uint16_t *port, struct error *err)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *places;
    char number[8], *host = bare_host(address);
    snprintf(number, sizeof number, "%u", address->port);
    int rc = getaddrinfo(host, number, &hints, &places);
    free(host);
    if (rc != 0)
        return error_set(err, -EADDRNOTAVAIL, "%s: %s", address->host, gai_strerror(rc));
    int fd = listen_at(places);
    freeaddrinfo(places);
    if (fd >= 0 && (rc = port_of(fd, port)) < 0) {
        close(fd);
        fd = rc;
    }
    if (fd < 0)
        return error_set(err, fd, "listen at %s:%u: %s", address->host, address->port,
                         fd == -EADDRINUSE ? "the port is in use" : strerror(-fd));
    return fd;
}

void web_place_print(char *out, size_t size, const struct rpc_address *address, uint16_t port)
{
    snprintf(out, size, "http%s://%s:%u", address->tls ? "s" : "", address->host, port);
}
