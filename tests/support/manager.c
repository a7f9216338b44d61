/* manager.c - a datagram socket, as systemd's. */
#include "tests/support/manager.h"

#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 10000

void manager_open(struct manager *manager, bool is_abstract, uint64_t watchdog_usec)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char usec[32];
    *manager = (struct manager){0};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s-%d",
                          is_abstract ? "@gimbal-manager" : "/tmp/gimbal-manager", (int)getpid());
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    if (is_abstract)
        address.sun_path[0] = '\0';
    else
        snprintf(manager->path, sizeof manager->path, "%s", address.sun_path);
    snprintf(usec, sizeof usec, "%llu", (unsigned long long)watchdog_usec);
    if (watchdog_usec)
        setenv("WATCHDOG_USEC", usec, 1);
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager->fd, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length);
    ck_assert_int_eq(bind(manager->fd, (struct sockaddr *)&address, size), 0);
}

void manager_close(struct manager *manager)
{
    close(manager->fd);
    if (manager->path[0])
        unlink(manager->path);
}

const char *manager_next(struct manager *manager)
{
    struct pollfd fd = {.fd = manager->fd, .events = POLLIN};
    ck_assert_msg(poll(&fd, 1, test_patience_ms(PATIENCE_MS)) == 1,
                  "nothing comes; the last was '%s'", manager->line);
    ssize_t size = recv(manager->fd, manager->line, sizeof manager->line - 1, 0);
    ck_assert_int_gt(size, 0);
    manager->line[size] = '\0';
    return manager->line;
}

const char *manager_await(struct manager *manager, const char *beginning)
{
    while (strncmp(manager_next(manager), beginning, strlen(beginning)) != 0)
        ;
    return manager->line;
}

bool manager_is_quiet(struct manager *manager)
{
    struct pollfd fd = {.fd = manager->fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 0;
}
