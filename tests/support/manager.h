/* manager.h - a service manager for tests: the socket that daemons tell how they are. */
#ifndef TESTS_SUPPORT_MANAGER_H
#define TESTS_SUPPORT_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct manager {
    int fd;
    char path[64];  /* "" for an abstract one */
    char line[512]; /* what came last */
};

/* Listen, at a path or in the abstract namespace, and set NOTIFY_SOCKET, and WATCHDOG_USEC unless
 * it is 0, for this process and those that it starts. */
void manager_open(struct manager *manager, bool is_abstract, uint64_t watchdog_usec);
void manager_close(struct manager *manager);

/* The next datagram; fails the test when for ten seconds none comes. Lent until the next call. */
const char *manager_next(struct manager *manager);
/* The next that begins so; others are passed over. */
const char *manager_await(struct manager *manager, const char *beginning);
/* Whether none is waiting. */
bool manager_is_quiet(struct manager *manager);

#endif
