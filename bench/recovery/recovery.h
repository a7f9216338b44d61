/* recovery.h - the parts of the bench. */
#ifndef BENCH_RECOVERY_RECOVERY_H
#define BENCH_RECOVERY_RECOVERY_H

/* Checkpoints beside the training. */
void bench_saves(void);
/* So many kills of executors and workers of a job whose executors stay, and so many of one that
 * begins again at its newest checkpoint. */
void bench_kills(int replans, int restarts);

#endif
