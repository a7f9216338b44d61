/* network.c - asks the kernel for the address, and walks through the InfiniBand devices and
 * interfaces that sysfs lists.
 *
 * Connecting a datagram socket sends nothing, but makes the kernel choose a source address. A given
 * address is tested by binding to it once.
 *
 * An interface of its own hardware has a `device`; loopback, bridges, bonds, VLANs and the like
 * have none. `upper_` and `lower_` entries say what stands on what: the address of two bonded cards
 * is the bond's. */
#include "worker/hardware/network.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SYSFS "/sys"
#define UPPER "upper_"
#define LOWER "lower_"
#define UPPERS_MAX 8 /* the kernel stacks no more interfaces */
/* Of the fastest card's speed: slower ones carry nothing of what is exchanged. */
#define SLOWEST 0.5

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
    if (rc == 0 && getnameinfo((const struct sockaddr *)&source, size, out, NETWORK_ADDRESS_SIZE,
                               NULL, 0, NI_NUMERICHOST) != 0)
        rc = -EADDRNOTAVAIL;
    return rc;
}

int network_source(const char *host, unsigned port, char out[NETWORK_ADDRESS_SIZE],
                   struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *found;
    size_t length = strlen(host);
    bool bracketed = host[0] == '[' && host[length - 1] == ']';
    char *name = xasprintf("%.*s", (int)(length - (bracketed ? 2 : 0)), host + bracketed),
         service[8];
    snprintf(service, sizeof service, "%u", port);
    int code = getaddrinfo(name, service, &hints, &found), rc = -EHOSTUNREACH;
    if (code != 0)
        rc = error_set(err, rc, "the coordinator's host '%s': %s", name, gai_strerror(code));
    for (const struct addrinfo *each = code == 0 ? found : NULL; rc < 0 && each;
         each = each->ai_next)
        rc = source_of(each, out);
    if (code == 0)
        freeaddrinfo(found);
    if (code == 0 && rc < 0)
        rc = error_set(err, -EHOSTUNREACH,
                       "no route leads to the coordinator's host '%s' (%s): give "
                       "--host-address, where other nodes reach this one",
                       name, strerror(-rc));
    free(name);
    return rc;
}

int network_listens(const char *host_address, struct error *err)
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

struct link {
    char *place; /* the function of the bus that it belongs to */
    unsigned port;
    double mbit_per_s; /* 0: unknown */
};

struct cards {
    const char *sys;
    const struct ifaddrs *addresses;
    const char *wanted; /* of the addresses; NULL: any */
    struct link *items;
    size_t count, capacity;
};

typedef void visit_cb(struct cards *cards, const char *folder, const char *name);

/* For every entry of a folder; none if there is no such folder. */
static void visit(struct cards *cards, const char *folder, visit_cb *each)
{
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            each(cards, folder, entry->d_name);
    if (directory)
        closedir(directory);
}

/* The first line of a file; "" if it cannot be read, as the kernel answers where a link is down. */
static const char *read_line(const char *folder, const char *name, char *line, size_t size)
{
    char *path = xasprintf("%s/%s", folder, name);
    file_line(path, line, size);
    free(path);
    return line;
}

/* 0 if there is none, or a negative one. */
static double read_number(const char *folder, const char *name)
{
    char line[64];
    return fmax(0, strtod(read_line(folder, name, line, sizeof line), NULL));
}

static char *resolve(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name), *resolved = realpath(path, NULL);
    free(path);
    return resolved;
}

/* Where it is on the bus; virtual functions are where the one is that they are made of. NULL: it
 * has no hardware of its own. */
static char *find_place(const char *folder)
{
    char *place = resolve(folder, "device/physfn");
    return place ? place : resolve(folder, "device");
}

/* Takes the place. Several interfaces may stand for one link, as InfiniBand's own and IP over it.
 */
static void cards_add(struct cards *cards, char *place, unsigned port, double mbit_per_s)
{
    for (size_t i = 0; i < cards->count; i++) {
        struct link *link = &cards->items[i];
        if (link->port == port && strcmp(link->place, place) == 0) {
            link->mbit_per_s = fmax(link->mbit_per_s, mbit_per_s);
            free(place);
            return;
        }
    }
    cards->items = grow(cards->items, cards->count, &cards->capacity, sizeof *cards->items);
    cards->items[cards->count++] = (struct link){place, port, mbit_per_s};
}

/* Whether other hosts may reach this address: it holds beyond the link, and beyond this host. */
static bool is_reachable(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        uint32_t host = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
        return host >> 24 != IN_LOOPBACKNET && host >> 16 != 0xa9fe; /* 169.254.0.0/16 */
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *host =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        return !IN6_IS_ADDR_LOOPBACK(host) && !IN6_IS_ADDR_LINKLOCAL(host);
    }
    return false;
}

static bool is_that(const struct sockaddr *address, const char *text)
{
    struct in_addr host;
    struct in6_addr host6;
    if (address->sa_family == AF_INET && inet_pton(AF_INET, text, &host) == 1)
        return memcmp(&((const struct sockaddr_in *)(const void *)address)->sin_addr, &host,
                      sizeof host) == 0;
    return address->sa_family == AF_INET6 && inet_pton(AF_INET6, text, &host6) == 1 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, &host6,
                  sizeof host6) == 0;
}

/* Whether it is the wanted address, or, if any is wanted, one that others may reach. */
static bool is_wanted(const struct cards *cards, const struct sockaddr *address)
{
    return address && is_reachable(address) && (!cards->wanted || is_that(address, cards->wanted));
}

static bool has_entry(const char *folder, const char *prefix)
{
    DIR *directory = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; directory && !found && (entry = readdir(directory));)
        found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (directory)
        closedir(directory);
    return found;
}

/* Whether the interface, or one that stands on it, has a wanted address. */
static bool is_addressed(const struct cards *cards, const char *name, int levels)
{
    for (const struct ifaddrs *at = cards->addresses; at; at = at->ifa_next)
        if (strcmp(at->ifa_name, name) == 0 && is_wanted(cards, at->ifa_addr))
            return true;
    char *folder = xasprintf("%s/class/net/%s", cards->sys, name);
    DIR *directory = levels > 0 ? opendir(folder) : NULL;
    bool addressed = false;
    for (const struct dirent *entry; directory && !addressed && (entry = readdir(directory));)
        addressed = strncmp(entry->d_name, UPPER, strlen(UPPER)) == 0 &&
                    is_addressed(cards, entry->d_name + strlen(UPPER), levels - 1);
    if (directory)
        closedir(directory);
    free(folder);
    return addressed;
}

/* One that stands on others has a device too where a hypervisor lends a card of its own as well. */
static void add_interface(struct cards *cards, const char *parent, const char *name)
{
    char *folder = xasprintf("%s/%s", parent, name), *place = find_place(folder);
    if (place && read_number(folder, "carrier") == 1 && !has_entry(folder, LOWER) &&
        is_addressed(cards, name, UPPERS_MAX)) {
        cards_add(cards, place, (unsigned)read_number(folder, "dev_port"),
                  read_number(folder, "speed"));
        place = NULL;
    }
    free(place);
    free(folder);
}

/* Whether the device, which is Ethernet's, has an interface with an address, by which others reach
 * it. */
static bool has_interface(struct cards *cards, const char *device)
{
    char *folder = xasprintf("%s/device/net", device);
    DIR *directory = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; directory && !found && (entry = readdir(directory));)
        found = entry->d_name[0] != '.' && is_addressed(cards, entry->d_name, UPPERS_MAX);
    if (directory)
        closedir(directory);
    free(folder);
    return found;
}

/* Ports are counted from 1 here. */
static void add_port(struct cards *cards, const char *parent, const char *name)
{
    char line[64];
    char *folder = xasprintf("%s/%s", parent, name), *device = xasprintf("%s/..", parent);
    char *place = find_place(device);
    bool active = strncmp(read_line(folder, "state", line, sizeof line), "4:", 2) == 0;
    bool ethernet = strcmp(read_line(folder, "link_layer", line, sizeof line), "Ethernet") == 0;
    if (place && active && (!ethernet || has_interface(cards, device))) {
        unsigned long port = strtoul(name, NULL, 10);
        cards_add(cards, place, port > 0 ? (unsigned)port - 1 : 0,
                  1000 * read_number(folder, "rate"));
        place = NULL;
    }
    free(place);
    free(device);
    free(folder);
}

static void add_ports(struct cards *cards, const char *parent, const char *name)
{
    char *ports = xasprintf("%s/%s/ports", parent, name);
    visit(cards, ports, add_port);
    free(ports);
}

/* Those that are not slow beside others. */
static unsigned count_fast(const struct cards *cards)
{
    double fastest = 0;
    unsigned count = 0;
    for (size_t i = 0; i < cards->count; i++)
        fastest = fmax(fastest, cards->items[i].mbit_per_s);
    for (size_t i = 0; i < cards->count; i++)
        count += cards->items[i].mbit_per_s >= SLOWEST * fastest;
    return count;
}

static bool has_wanted(const struct cards *cards)
{
    bool found = false;
    for (const struct ifaddrs *at = cards->addresses; at && !found; at = at->ifa_next)
        found = is_wanted(cards, at->ifa_addr);
    return found;
}

unsigned network_cards(const char *sys, const struct ifaddrs *addresses, const char *address)
{
    struct cards cards = {.sys = sys, .addresses = addresses};
    char *net = xasprintf("%s/class/net", sys), *infiniband = xasprintf("%s/class/infiniband", sys);
    visit(&cards, infiniband, add_ports);
    cards.wanted = address;
    if (cards.count == 0)
        visit(&cards, net, add_interface);
    unsigned count = count_fast(&cards);
    if (count == 0 && has_wanted(&cards))
        count = 1; /* a container's interface leads to a card that is not shown in there */
    for (size_t i = 0; i < cards.count; i++)
        free(cards.items[i].place);
    free(cards.items);
    free(infiniband);
    free(net);
    return count;
}

int network_cards_here(const char *address, unsigned *count, struct error *err)
{
    struct ifaddrs *addresses;
    if (getifaddrs(&addresses) < 0)
        return error_set(err, -errno, "the addresses of this host cannot be listed: %s",
                         strerror(errno));
    *count = network_cards(SYSFS, addresses, address);
    freeifaddrs(addresses);
    return 0;
}
