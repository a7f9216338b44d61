/* loop.c - one thread for any number of nodes: poll, then give a turn to each node to which
 * something happened. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/rpc/clock.h"
#include "worker/daemon/internal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

struct loop {
    struct daemon *const *daemons;
    size_t count;
    int signal_fd;
    struct notify *notify;
    bool stopping;
    struct pollfd *fds; /* the signalfd, then those of each daemon */
    size_t fd_capacity;
};

/* Returns their number. */
static size_t list_fds(struct loop *loop)
{
    size_t count = 1;
    for (size_t i = 0; i < loop->count; i++)
        count += daemon_fd_count(loop->daemons[i]);
    if (!loop->fds || count > loop->fd_capacity) {
        free(loop->fds);
        loop->fds = xcalloc(count, sizeof *loop->fds);
        loop->fd_capacity = count;
    }
    loop->fds[0] = (struct pollfd){.fd = loop->signal_fd, .events = POLLIN};
    size_t at = 1;
    for (size_t i = 0; i < loop->count; i++) {
        daemon_list_fds(loop->daemons[i], &loop->fds[at]);
        at += daemon_fd_count(loop->daemons[i]);
    }
    return count;
}

static int timeout_ms(const struct loop *loop)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < loop->count; i++) {
        uint64_t of_it = daemon_next_ms(loop->daemons[i]);
        if (!loop->daemons[i]->quit && of_it < next_ms)
            next_ms = of_it;
    }
    if (next_ms == UINT64_MAX)
        return -1;
    uint32_t left = rpc_clock_left_ms(next_ms, daemon_now_ms());
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* Whether the daemon's turn would have anything to do. */
static bool is_due(const struct daemon *daemon, const struct pollfd *fds, uint64_t now_ms)
{
    if (daemon_next_ms(daemon) <= now_ms || daemon->actions.count > 0)
        return true;
    for (size_t i = 0; i < daemon_fd_count(daemon); i++)
        if (fds[i].revents)
            return true;
    return false;
}

static void take_signal(struct loop *loop)
{
    struct signalfd_siginfo info;
    if (read(loop->signal_fd, &info, sizeof info) != sizeof info)
        return;
    loop->stopping = true;
    for (size_t i = 0; i < loop->count; i++)
        if (!loop->daemons[i]->quit)
            daemon_terminate(loop->daemons[i]);
}

/* One round of the loop. -errno: poll has failed. */
static int turn(struct loop *loop)
{
    size_t fd_count = list_fds(loop), at = 1;
    int wait_ms = notify_timeout_ms(loop->notify, timeout_ms(loop), daemon_now_ms());
    if (poll(loop->fds, fd_count, wait_ms) < 0)
        return errno == EINTR ? 0 : -errno; /* a signal without a handler here */
    uint64_t now_ms = daemon_now_ms();
    for (size_t i = 0; i < loop->count; i++) {
        struct daemon *daemon = loop->daemons[i];
        const struct pollfd *fds = &loop->fds[at];
        at += daemon_fd_count(daemon); /* the number that was listed */
        if (!daemon->quit && is_due(daemon, fds, now_ms))
            daemon_turn(daemon, fds);
    }
    if (loop->fds[0].revents)
        take_signal(loop);
    return 0;
}

/* All daemons have ended, or one has without being told to. *status is set if one ended with an
 * error. */
static bool is_over(const struct loop *loop, int *status)
{
    size_t ended = 0;
    for (size_t i = 0; i < loop->count; i++) {
        const struct daemon *daemon = loop->daemons[i];
        if (daemon->quit && daemon->status != 0)
            *status = daemon->status;
        ended += daemon->quit;
    }
    return ended == loop->count || (ended > 0 && !loop->stopping);
}

static void tell_manager(const struct loop *loop)
{
    char words[256];
    if (loop->count == 1)
        notify_status(loop->notify, "%s",
                      supervisor_describe(loop->daemons[0]->supervisor, words, sizeof words));
    else
        notify_status(loop->notify, "a fleet of %zu nodes", loop->count);
    notify_alive(loop->notify, daemon_now_ms());
}

int daemons_run(struct daemon *const *daemons, size_t count, int signal_fd, struct notify *notify)
{
    struct loop loop = {
        .daemons = daemons, .count = count, .signal_fd = signal_fd, .notify = notify};
    int status = EXIT_SUCCESS, rc = 0;
    tell_manager(&loop);
    notify_ready(notify);
    while (rc == 0 && !is_over(&loop, &status)) {
        rc = turn(&loop);
        tell_manager(&loop);
    }
    if (rc < 0) {
        log_line(LOG_ERROR, "cannot wait for what happens, and leaves: poll: %s", strerror(-rc));
        status = EX_OSERR;
    }
    notify_stopping(notify);
    for (size_t i = 0; i < count; i++)
        daemon_flush(daemons[i]);
    free(loop.fds);
    return status;
}
