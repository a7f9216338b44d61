/* times.h - measured seconds of a rank's instructions, summed by class: the operation and
 * direction, in blocks of one type; and of the step those in which computing waited for the queue
 * that moves data. */
#ifndef WORKER_EXECUTOR_TIMES_H
#define WORKER_EXECUTOR_TIMES_H

#include "worker/executor/interpreter.h"

struct reporter;
struct times;

struct times *times_create(const struct program *program); /* the program is lent */
void times_destroy(struct times *times);                   /* accepts NULL */
/* Tell the reporter what was spent since the last report. */
void times_report(struct times *times, const struct interpreter *in, int rank,
                  const struct reporter *reporter);
/* Count from here on; what was spent since the last report is told to nobody. */
void times_forget(struct times *times, const struct interpreter *in);

#endif
