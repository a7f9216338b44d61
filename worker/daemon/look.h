/* look.h - what the kernel says of an executor's process, from outside. */
#ifndef WORKER_DAEMON_LOOK_H
#define WORKER_DAEMON_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct look {
    uint64_t at_ms;   /* when it was taken; 0: none was */
    uint64_t busy_ms; /* processor time that the process had had */
    bool stopped;     /* by a signal or a debugger */
    bool starved;     /* it wants a processor, and has had one for less than half of the time since
                         the look before: it is no fault of its own that it does not go on */
};

/* Look again. Of a process that is gone it says neither. */
void look_again(struct look *look, pid_t pid, uint64_t now_ms);

#endif
