/* route.c - connecting a datagram socket sends nothing, but makes the kernel choose a source
 * address. A given address is tested by binding to it once. */
#include "worker/daemon/route.h"

#include "common/rpc/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int source_of(const struct addrinfo *to, char *out)
{
    struct sockaddr_storage source;
    socklen_t size = sizeof source;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, to->ai_addr, to->ai_addrlen) < 0 ||
                     getsockname(fd, (struct sockaddr *)&source, &size) < 0
                 ? -errno
                 : 0;
    close(fd);
    if (rc == 0 && getnameinfo((const struct sockaddr *)&source, size, out, ROUTE_ADDRESS_SIZE,
                               NULL, 0, NI_NUMERICHOST) != 0)
        rc = -EADDRNOTAVAIL;
    return rc;
}

int route_address(const char *coordinator, char out[ROUTE_ADDRESS_SIZE], struct error *err)
{
    struct rpc_address address;
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *found;
    char host[sizeof address.host], port[8];
    int rc = rpc_address_parse(coordinator, &address, err);
    if (rc < 0)
        return rc;
    size_t length = strlen(address.host);
    bool bracketed = address.host[0] == '[' && address.host[length - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(length - (bracketed ? 2 : 0)),
             address.host + (bracketed ? 1 : 0));
    snprintf(port, sizeof port, "%u", address.port);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return error_set(err, -EHOSTUNREACH, "the coordinator's host '%s': %s", host,
                         gai_strerror(code));
    rc = -EHOSTUNREACH;
    for (const struct addrinfo *each = found; rc < 0 && each; each = each->ai_next)
        rc = source_of(each, out);
    freeaddrinfo(found);
    if (rc < 0)
        return error_set(err, -EHOSTUNREACH,
                         "no route leads to the coordinator's host '%s' (%s): give --host-address, "
                         "where other nodes reach this one",
                         host, strerror(-rc));
    return 0;
}

int route_check(const char *host_address, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    if (getaddrinfo(host_address, NULL, &hints, &found) != 0)
        return error_set(err, -EINVAL,
                         "host_address: '%s' is no IP address; write one of this host's, as in "
                         "10.0.0.2, or leave it out",
                         host_address);
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0)
        rc = error_set(err, -EINVAL,
                       "host_address: ranks cannot listen at '%s': %s; give an address of this "
                       "host, or leave it out",
                       host_address, strerror(errno));
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return rc;
}
