/* manager.h - a service manager for tests: the socket to which daemons report their state, as to
 * systemd. */
#ifndef TESTS_SUPPORT_MANAGER_H
#define TESTS_SUPPORT_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct manager {
    int fd;
    char path[64];  /* of the socket; "" if it is abstract */
    char line[512]; /* the last datagram */
};

/* Listen, at a path or in the abstract namespace, and set NOTIFY_SOCKET, and WATCHDOG_USEC unless
 * it is 0, for this process and those that it starts. */
void manager_open(struct manager *manager, bool is_abstract, uint64_t watchdog_usec);
void manager_close(struct manager *manager);

/* Wait for the next datagram; fails the test if none comes within ten seconds. Lent until the next
 * call. */
const char *manager_next(struct manager *manager);
/* Wait for the next datagram with this beginning, skipping others. */
const char *manager_await(struct manager *manager, const char *beginning);
/* Whether no datagram is waiting. */
bool manager_is_quiet(struct manager *manager);

#endif
