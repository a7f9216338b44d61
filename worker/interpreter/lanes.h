/* lanes.h - the queues of a step as lanes of an accelerator. Where the device works in the host's
 * memory there are none, struct lanes is NULL, and nothing here does anything.
 *
 * Instructions are issued by the threads of their queues in the order in which a device without
 * lanes would run them. What one lane needs of the other it awaits by the mark behind that
 * instruction; the host waits at the end of a step only. */
#ifndef WORKER_INTERPRETER_LANES_H
#define WORKER_INTERPRETER_LANES_H

#include "common/program/walk.h"
#include "worker/kernels/accelerator.h"

struct lanes;

/* The program is lent. *out is NULL without an accelerator. */
int lanes_open(const struct program *program, const struct accelerator *accelerator,
               struct lanes **out, struct error *err);
void lanes_close(struct lanes *lanes);

/* The calling thread issues to this queue's lane, until it leaves. */
void lanes_enter(struct lanes *lanes, enum queue queue);
void lanes_leave(struct lanes *lanes);
/* Before the instruction at the cursor: all that it waits for has been issued. */
void lanes_await(struct lanes *lanes, const struct program_walk *walk);
/* Behind an instruction. */
void lanes_pass(struct lanes *lanes, int index);
/* All that the calling thread's lane was given is done. */
int lanes_finish(struct lanes *lanes, struct error *err);

/* A step begins; no lane has work. */
void lanes_begin(struct lanes *lanes);
/* Memory that the lane of computing reads from until the end of the step: as much as all loads of
 * a step need. */
void *lanes_stage(struct lanes *lanes, size_t bytes);

#endif
