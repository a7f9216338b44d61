/* notify.h - what a daemon tells the service manager that started it: the protocol of systemd's
 * sd_notify(3), datagrams of KEY=VALUE lines to the socket that NOTIFY_SOCKET names.
 *
 * Without such a socket, as in a shell or a container, every call here does nothing. Where
 * WATCHDOG_USEC asks for signs of life, they are sent at half that time from the daemon's own
 * loop: a loop that is stuck sends none, and the manager starts the daemon again. */
#ifndef COMMON_BASE_NOTIFY_H
#define COMMON_BASE_NOTIFY_H

#include "common/base/error.h"

#include <stdint.h>

struct notify {
    int fd;               /* -1: nobody listens */
    uint64_t watchdog_ms; /* between signs of life; 0: none are wanted */
    uint64_t due_ms;      /* of the next one */
    char status[256];     /* the last that was told */
};

/* Read and remove the variables, so that no child takes them for its own; before there are
 * threads. -EINVAL for a socket or a time that is none; notify is then as without a manager, and
 * may be used. */
int notify_open(struct notify *notify, struct error *err);
void notify_close(struct notify *notify);

/* The daemon is up; the manager may start what comes after it. */
void notify_ready(struct notify *notify);
/* It goes down of its own will. */
void notify_stopping(struct notify *notify);
/* What it does, in a sentence for `systemctl status`; the same again is not sent. */
void notify_status(struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Send the sign of life if it is due; times are milliseconds of a clock that never runs back. */
void notify_alive(struct notify *notify, uint64_t now_ms);
/* timeout_ms of a poll(2), -1 for ever, cut to when the next sign of life is due. */
int notify_timeout_ms(const struct notify *notify, int timeout_ms, uint64_t now_ms);

#endif
