/* times.h - the time that a rank's instructions take, summed by class.
 *
 * A class is an operation and direction in blocks of one type. Two further sums are reported for
 * the step as a whole: the time for which computation waited for the other queue, and the time of
 * all kernels beside its prediction. No other rank has a part in the latter, so it tells whether
 * the device is as fast as it should be. */
#ifndef WORKER_TRAINER_TIMES_H
#define WORKER_TRAINER_TIMES_H

#include "worker/interpreter/interpreter.h"

struct reporter;
struct times;

/* Lends the program. compute_s is the predicted time of its kernels per step; 0: unknown. */
struct times *times_create(const struct program *program, double compute_s);
void times_destroy(struct times *times); /* accepts NULL */
/* Whether the last report was TIMES_EVERY_S ago or longer. */
bool times_due(const struct times *times);
/* Report the time spent since the last report. Says nothing if no timed step was run since. */
void times_report(struct times *times, const struct interpreter *in, int rank,
                  const struct reporter *reporter);
/* Start counting afresh; what was spent since the last report is never reported. */
void times_forget(struct times *times, const struct interpreter *in);

#endif
