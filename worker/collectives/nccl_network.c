/* nccl_network.c - chooses NCCL's network interface by address: see nccl_network.h. */
#include "worker/collectives/nccl_network.h"

#include "common/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "NCCL_SOCKET_IFNAME"

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
                      &((const struct sockaddr_in *)(const void *)b)->sin_addr,
                      sizeof(struct in_addr)) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

static const char *interface_of(const struct ifaddrs *interfaces, const struct addrinfo *addresses)
{
    for (const struct addrinfo *address = addresses; address; address = address->ai_next)
        for (const struct ifaddrs *interface = interfaces; interface;
             interface = interface->ifa_next)
            if (is_same(interface->ifa_addr, address->ai_addr))
                return interface->ifa_name;
    return NULL;
}

int nccl_interface_find(const char *address, char *name, size_t size, struct error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    struct ifaddrs *interfaces;
    int rc = getaddrinfo(address, NULL, &hints, &addresses);
    if (rc != 0)
        return error_set(err, -EINVAL, "'%s' is no address: %s", address, gai_strerror(rc));
    if (getifaddrs(&interfaces) < 0) {
        rc = error_set(err, -errno, "cannot list network interfaces: %s", strerror(errno));
        freeaddrinfo(addresses);
        return rc;
    }
    const char *found = interface_of(interfaces, addresses);
    if (!found)
        rc = error_set(err, -ENOENT, "no network interface of this machine has %s", address);
    else if ((size_t)snprintf(name, size, "%s", found) >= size)
        rc = error_set(err, -ENAMETOOLONG, "the name of interface '%s' is too long", found);
    freeifaddrs(interfaces);
    freeaddrinfo(addresses);
    return rc;
}

void nccl_interface_use(const char *address)
{
    char name[IF_NAMESIZE], exactly[IF_NAMESIZE + 1];
    struct error err;
    if (!address || getenv(VARIABLE))
        return;
    if (nccl_interface_find(address, name, sizeof name, &err) < 0) {
        log_line(LOG_WARN, "nccl: %s; it chooses an interface by itself: " VARIABLE " names one",
                 err.text);
        return;
    }
    snprintf(exactly, sizeof exactly, "=%s", name);
    setenv(VARIABLE, exactly, 1);
}

void nccl_ways_use(void)
{
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}
