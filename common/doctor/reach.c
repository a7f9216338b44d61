/* reach.c - starts a non-blocking connection and waits for its end; a refusal is an answer, too. */
#include "common/doctor/reach.h"

#include "common/base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Waits for a connection that was begun; returns 0 or its errno. */
static int reach_await(int fd, int timeout_ms)
{
    struct pollfd connected = {.fd = fd, .events = POLLOUT};
    int error = 0, ready = poll(&connected, 1, timeout_ms);
    socklen_t size = sizeof error;
    if (ready == 0)
        return ETIMEDOUT;
    return ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* Tries one address; returns 0 or an errno. */
static int try_one(const struct addrinfo *to, int timeout_ms, struct reach *out)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    double begin = clock_s();
    int error = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS)
        error = reach_await(fd, timeout_ms);
    *out = (struct reach){.listens = error == 0, .seconds = clock_s() - begin};
    close(fd);
    return error == ECONNREFUSED ? 0 : error;
}

int reach_port(const char *host, uint16_t port, int timeout_ms, struct reach *out,
               struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    char name[256], number[8];
    bool bracketed = host[0] == '[';
    snprintf(name, sizeof name, "%s", host + bracketed);
    name[strcspn(name, bracketed ? "]" : "")] = '\0';
    snprintf(number, sizeof number, "%u", port);
    int code = getaddrinfo(name, number, &hints, &found), error = EHOSTUNREACH;
    if (code != 0)
        return error_set(err, -EHOSTUNREACH, "host '%s': %s", name, gai_strerror(code));
    for (const struct addrinfo *each = found; error != 0 && each; each = each->ai_next)
        error = try_one(each, timeout_ms, out);
    freeaddrinfo(found);
    if (error == 0)
        return 0;
    return error_set(err, error == ETIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH, "%s, port %u: %s", name,
                     port, error == ETIMEDOUT ? "nothing comes back" : strerror(error));
}
