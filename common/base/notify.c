/* notify.c - one socket, connected to the manager's. A datagram that cannot be sent within a second
 * is dropped, since a daemon must not hang because its manager does. */
#include "common/base/notify.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A leading '@' stands for the NUL that begins a name in the abstract namespace. */
static int connect_to(const char *name, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof address.sun_path)
        return error_set(err, -EINVAL, "NOTIFY_SOCKET: '%s' is neither a path nor @NAME", name);
    memcpy(address.sun_path, name, length);
    /* An abstract name has no final NUL. */
    size_t size = offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/');
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(err, -errno, "NOTIFY_SOCKET: socket: %s", strerror(errno));
    struct timeval patience = {.tv_sec = 1};
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (struct sockaddr *)&address, (socklen_t)size) < 0) {
        int rc = error_set(err, -EINVAL, "NOTIFY_SOCKET: '%s': %s", name, strerror(errno));
        close(fd);
        return rc;
    }
    return fd;
}

static int read_number(const char *variable, uint64_t *out, struct error *err)
{
    const char *text = getenv(variable);
    char *end;
    *out = 0;
    if (!text)
        return 0;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9')
        return error_set(err, -EINVAL, "%s: '%s' is no whole number", variable, text);
    return 0;
}

/* Half the period of WATCHDOG_USEC; 0 if WATCHDOG_PID says that it is meant for another process. */
static int read_watchdog(uint64_t *watchdog_ms, struct error *err)
{
    uint64_t usec, pid;
    int rc = read_number("WATCHDOG_USEC", &usec, err);
    if (rc == 0)
        rc = read_number("WATCHDOG_PID", &pid, err);
    if (rc < 0)
        return rc;
    if (pid != 0 && pid != (uint64_t)getpid())
        usec = 0;
    *watchdog_ms = usec / 2000;
    return usec > 0 && *watchdog_ms == 0
               ? error_set(err, -EINVAL, "WATCHDOG_USEC: less than 2000 cannot be kept")
               : 0;
}

int notify_open(struct notify *notify, struct error *err)
{
    *notify = (struct notify){.fd = -1};
    const char *name = getenv("NOTIFY_SOCKET");
    int rc = 0;
    if (name) {
        uint64_t watchdog_ms;
        rc = read_watchdog(&watchdog_ms, err);
        int fd = rc < 0 ? rc : connect_to(name, err);
        rc = fd < 0 ? fd : 0;
        if (rc == 0)
            *notify = (struct notify){.fd = fd, .watchdog_ms = watchdog_ms};
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return rc;
}

void notify_close(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
    notify->watchdog_ms = 0;
}

/* Errors are ignored: there is nobody to report them to. */
static void send_line(const struct notify *notify, const char *line)
{
    if (notify->fd < 0)
        return;
    while (send(notify->fd, line, strlen(line), MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

void notify_ready(struct notify *notify)
{
    send_line(notify, "READY=1");
}

void notify_stopping(struct notify *notify)
{
    send_line(notify, "STOPPING=1");
}

void notify_status(struct notify *notify, const char *format, ...)
{
    char status[sizeof notify->status], line[sizeof status + 8];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status, sizeof status, format, arguments);
    va_end(arguments);
    /* A newline would begin another key. */
    for (char *letter = status; *letter; letter++)
        *letter = (unsigned char)*letter < ' ' ? ' ' : *letter;
    if (strcmp(status, notify->status) == 0)
        return;
    memcpy(notify->status, status, sizeof status);
    snprintf(line, sizeof line, "STATUS=%s", status);
    send_line(notify, line);
}

void notify_alive(struct notify *notify, uint64_t now_ms)
{
    if (notify->watchdog_ms == 0 || now_ms < notify->due_ms)
        return;
    notify->due_ms = now_ms + notify->watchdog_ms;
    send_line(notify, "WATCHDOG=1");
}

int notify_timeout_ms(const struct notify *notify, int timeout_ms, uint64_t now_ms)
{
    if (notify->watchdog_ms == 0)
        return timeout_ms;
    uint64_t left_ms = notify->due_ms > now_ms ? notify->due_ms - now_ms : 0;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms <= left_ms)
        return timeout_ms;
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}
