/* moment.c - waits for an instruction of a step from outside the executor: the file in which an
 * executor keeps its state (worker/estate) also says how far it has computed. */
#include "bench/recovery/recovery.h"
#include "bench/victims.h"
#include "worker/estate/estate.h"
#include "worker/node/inherited.h"

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
    uint32_t reached = 0, count = 0;
    uint64_t until_ms = victims_now_unix_ms() + PATIENCE_MS;
    bool before = false, there = false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)executor, INHERITED_STATE);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !there && victims_now_unix_ms() < until_ms) {
        look_away();
        if (estate_watch(fd, &reached, &count) < 0)
            continue;
        uint32_t wanted = (uint32_t)(share * count);
        there = before && reached >= wanted;
        before = before || reached < wanted || wanted == 0;
    }
    if (fd >= 0)
        close(fd);
    return there;
}
