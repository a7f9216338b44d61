/* notify.h - tells the service manager that started a daemon how it is doing, by the protocol of
 * systemd's sd_notify(3): datagrams of KEY=VALUE lines to the socket that NOTIFY_SOCKET names.
 *
 * Without such a socket, as in a shell or a container, every call does nothing. If WATCHDOG_USEC
 * asks for keep-alive messages, they are sent twice per that period from the daemon's own loop, so
 * that the manager restarts a daemon whose loop is stuck. */
#ifndef COMMON_BASE_NOTIFY_H
#define COMMON_BASE_NOTIFY_H

#include "common/base/error.h"

#include <stdint.h>

struct notify {
    int fd;               /* -1: there is no manager */
    uint64_t watchdog_ms; /* between keep-alive messages; 0: none are wanted */
    uint64_t due_ms;      /* when the next one is due */
    char status[256];     /* the last status sent */
};

/* Read the environment variables, and remove them so that children do not take them for their own.
 * To be called before there are threads. -EINVAL when the socket or the period is malformed; notify
 * may be used even then, as if there were no manager. */
int notify_open(struct notify *notify, struct error *err);
void notify_close(struct notify *notify);

/* The daemon is up; the manager may start what depends on it. */
void notify_ready(struct notify *notify);
/* The daemon is shutting down on purpose. */
void notify_stopping(struct notify *notify);
/* Set the sentence that `systemctl status` shows. An unchanged one is not sent again. */
void notify_status(struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Send the keep-alive message if it is due. Times are milliseconds of a monotonic clock. */
void notify_alive(struct notify *notify, uint64_t now_ms);
/* The timeout for poll(2) (-1: none), shortened to when the next keep-alive message is due. */
int notify_timeout_ms(const struct notify *notify, int timeout_ms, uint64_t now_ms);

#endif
