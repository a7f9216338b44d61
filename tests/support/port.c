/* port.c - draw, claim, and try to bind.
 *
 * What is drawn is bound to a while later, by another process; so that no other test draws it
 * meanwhile it is claimed by a name among abstract sockets, until this process ends. */
#include "tests/support/port.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST 10000
#define LAST 19900 /* above, a coordinator with TLS looks for ports itself */
#define TRIES 1000
#define PORTS_MAX 8 /* at a time */

static bool is_free(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool free = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return free;
}

/* The claim, an open descriptor; -1: somebody else has it. */
static int claim(unsigned port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "gimbal-port-%u", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (bind(fd, (const struct sockaddr *)&name, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* All or none of `count` ports from this one on. */
static bool take(unsigned first, unsigned count)
{
    int claims[PORTS_MAX];
    unsigned claimed = 0, free = 0;
    while (claimed < count && (claims[claimed] = claim(first + claimed)) >= 0)
        claimed++;
    while (free < claimed && is_free(first + free))
        free++;
    if (free == count)
        return true;
    while (claimed > 0)
        close(claims[--claimed]);
    return false;
}

/* Tests that run at the same time draw too: not from their seed, which is the same. */
uint16_t port_choose(unsigned count)
{
    ck_assert_uint_le(count, PORTS_MAX);
    for (int i = 0; i < TRIES; i++) {
        unsigned drawn;
        ck_assert_int_eq(getrandom(&drawn, sizeof drawn, 0), sizeof drawn);
        unsigned first = FIRST + drawn % (LAST - FIRST);
        if (take(first, count))
            return (uint16_t)first;
    }
    ck_abort_msg("no free ports from %d to %d", FIRST, LAST);
    return 0;
}
