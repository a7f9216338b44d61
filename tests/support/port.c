/* port.c - draw, and try to bind. */
#include "tests/support/port.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST 10000
#define LAST 32000
#define TRIES 1000

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

/* Tests that run at the same time draw too: not from their seed, which is the same. */
uint16_t port_choose(unsigned count)
{
    for (int i = 0; i < TRIES; i++) {
        unsigned drawn, taken = 0;
        ck_assert_int_eq(getrandom(&drawn, sizeof drawn, 0), sizeof drawn);
        unsigned first = FIRST + drawn % (LAST - FIRST);
        while (taken < count && is_free(first + taken))
            taken++;
        if (taken == count)
            return (uint16_t)first;
    }
    ck_abort_msg("no free ports from %d to %d", FIRST, LAST);
    return 0;
}
