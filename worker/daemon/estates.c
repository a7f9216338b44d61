/* estates.c - the files in which executors keep their state. The worker holds each of them open
 * too, so that it outlives a killed executor and can be given to the next one of the job on that
 * device. */
#include "worker/daemon/internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FD_LEAST 16 /* above the descriptors that a child is started with */

/* The file of a rank whose executor is gone. */
struct estate_left {
    uint64_t rank;
    int fd;
};

static int make(void)
{
    int made = memfd_create("gimbal-state", MFD_CLOEXEC);
    int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, FD_LEAST);
    if (fd < 0)
        log_line(LOG_WARN, "no file for the state of an executor, which dies with it: %s",
                 strerror(errno));
    if (made >= 0)
        close(made);
    return fd;
}

int estates_take(struct daemon *daemon, uint64_t from)
{
    for (size_t i = 0; i < daemon->left_count; i++) {
        int fd = daemon->left[i].fd;
        if (daemon->left[i].rank != from)
            continue;
        daemon->left[i] = daemon->left[--daemon->left_count];
        return fd;
    }
    return make();
}

void estates_leave(struct daemon *daemon, uint64_t rank, int fd)
{
    if (fd < 0)
        return;
    daemon->left =
        grow(daemon->left, daemon->left_count, &daemon->left_capacity, sizeof *daemon->left);
    daemon->left[daemon->left_count++] = (struct estate_left){rank, fd};
}

void estates_sweep(struct daemon *daemon)
{
    for (size_t i = daemon->left_count; i-- > 0;) {
        const struct rank *rank = supervisor_rank(daemon->supervisor, daemon->left[i].rank);
        if (rank && rank->leaves)
            continue;
        close(daemon->left[i].fd);
        daemon->left[i] = daemon->left[--daemon->left_count];
    }
}

void estates_close(struct daemon *daemon)
{
    while (daemon->left_count > 0)
        close(daemon->left[--daemon->left_count].fd);
    free(daemon->left);
}
