/* recovery.h - the parts of the bench. */
#ifndef BENCH_RECOVERY_RECOVERY_H
#define BENCH_RECOVERY_RECOVERY_H

#include <stdbool.h>
#include <sys/types.h>

/* Checkpoints beside the training. */
void bench_saves(void);
/* What plans for those that are left are worth. */
void bench_survivors(void);
/* Wait until the executor computes an instruction of this share of its program, from 0 to 1, or one
 * behind it; false: it did not within a while. */
bool bench_await_moment(pid_t executor, double share);
/* So many kills of executors and workers of a job whose executors stay, and so many of one that
 * begins again at its newest checkpoint. */
void bench_kills(int replans, int restarts);

#endif
