/* moment.c - waits for an instruction of a step from outside the executor, whose trail says where
 * it is. */
#include "bench/recovery/recovery.h"
#include "bench/victims.h"
#include "worker/node/child.h"
#include "worker/trail/trail.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 3000

static void look_away(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

bool bench_await_moment(pid_t executor, double share)
{
    char path[64];
    struct trail *trail = NULL;
    struct trail_position at;
    struct error ignored;
    uint64_t until_ms = victims_now_unix_ms() + PATIENCE_MS;
    bool before = false, there = false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)executor, INHERITED_TRAIL);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    trail_open(fd, &trail, &ignored);
    close(fd);
    while (trail && !there && victims_now_unix_ms() < until_ms) {
        look_away();
        if (!trail_read(trail, &at) || at.call.instructions == 0)
            continue;
        uint32_t wanted = (uint32_t)(share * at.call.instructions);
        there = before && at.call.instruction >= wanted;
        before = before || at.call.instruction < wanted || wanted == 0;
    }
    trail_close(trail);
    return there;
}
