/* lanes.h - the queues of a step as lanes of an accelerator.
 *
 * A device that computes in the host's memory has no lanes: struct lanes is then NULL, and every
 * function here but lanes_stage accepts that and does nothing.
 *
 * The thread of each queue issues its instructions in the order in which a device without lanes
 * would execute them. If an instruction needs a result of the other lane, its lane awaits the mark
 * that was set after that result. The host itself waits only at the end of a step. */
#ifndef WORKER_INTERPRETER_LANES_H
#define WORKER_INTERPRETER_LANES_H

#include "common/program/walk.h"
#include "worker/kernels/accelerator.h"

struct lanes;

/* Open a lane per queue that the program uses, with marks and pinned memory for its inputs. Lends
 * the program. *out is NULL without an accelerator. Errors of the accelerator. */
int lanes_open(const struct program *program, const struct accelerator *accelerator,
               struct lanes **out, struct error *err);
/* Wait for the lanes' work, then close them. Accepts NULL. */
void lanes_close(struct lanes *lanes);

/* From here on the calling thread issues to this queue's lane, or to the one for copies to the host
 * beside both queues, until lanes_leave. */
void lanes_enter(struct lanes *lanes, enum queue queue);
void lanes_enter_beside(struct lanes *lanes);
void lanes_leave(struct lanes *lanes);
/* Make the lane wait for everything that the instruction at the cursor needs from the other queue,
 * all of which has been issued. */
void lanes_await(struct lanes *lanes, const struct program_walk *walk);
/* Set the instruction's mark, if any; called after it has been issued. */
void lanes_pass(struct lanes *lanes, int index);
/* Wait until the calling thread's lane has completed all its work. Returns the first error in
 * it. */
int lanes_finish(struct lanes *lanes, struct error *err);

/* Begin a step, which frees the staging memory; no lane may have work. */
void lanes_begin(struct lanes *lanes);
/* Pinned memory for one load, from which the compute lane reads until the end of the step. There is
 * as much as all loads of a step need. */
void *lanes_stage(struct lanes *lanes, size_t bytes);

#endif
