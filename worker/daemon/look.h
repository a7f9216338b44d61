/* look.h - what the kernel says about an executor's process, seen from outside. */
#ifndef WORKER_DAEMON_LOOK_H
#define WORKER_DAEMON_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct look {
    uint64_t at_ms;   /* time of the look; 0: none yet */
    uint64_t busy_ms; /* processor time that the process had used by then */
    bool stopped;     /* by a signal or a debugger */
    /* A thread of it is runnable, but the process has used a processor for less than half the time
     * since the last look: that it makes no progress is not its own fault. */
    bool starved;
};

/* Update the look. A process that is gone is neither stopped nor starved. */
void look_again(struct look *look, pid_t pid, uint64_t now_ms);

#endif
