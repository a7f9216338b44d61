/* recovery.h - the parts of the bench. */
#ifndef BENCH_RECOVERY_RECOVERY_H
#define BENCH_RECOVERY_RECOVERY_H

#include <stdbool.h>
#include <sys/types.h>

/* Measure what checkpoints, and a state that outlives its process, cost the training. */
void bench_saves(void);
/* Judge the plans for the devices that are left after a loss. */
void bench_survivors(void);
/* Wait until the executor reaches this share of its program, from 0 (the first instruction) to 1.
 * false: it did not within a few seconds. */
bool bench_await_moment(pid_t executor, double share);
/* Kill executors and workers `replans` times in a job that replans, whose executors stay, and
 * `restarts` times in one that starts again from its newest checkpoint. */
void bench_kills(int replans, int restarts);

#endif
