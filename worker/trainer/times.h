/* times.h - measured seconds of a rank's instructions, summed by class: the operation and
 * direction, in blocks of one type; and of the step those in which computing waited for the queue
 * that moves data. Beside these the sum over all kernels, with what was predicted of it: that tells
 * whether the device is as fast as it should be, for nobody else has a part in it. */
#ifndef WORKER_TRAINER_TIMES_H
#define WORKER_TRAINER_TIMES_H

#include "worker/interpreter/interpreter.h"

struct reporter;
struct times;

/* The program is lent; its kernels are predicted to take compute_s in a step, 0: not known. */
struct times *times_create(const struct program *program, double compute_s);
void times_destroy(struct times *times); /* accepts NULL */
/* Whether the last report was long ago. */
bool times_due(const struct times *times);
/* Tell the reporter what was spent since the last report. */
void times_report(struct times *times, const struct interpreter *in, int rank,
                  const struct reporter *reporter);
/* Count from here on; what was spent since the last report is told to nobody. */
void times_forget(struct times *times, const struct interpreter *in);

#endif
