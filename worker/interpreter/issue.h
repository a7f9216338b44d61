/* issue.h - how work is issued to a device that works beside the host.
 *
 * The queues of a step are *streams* of its accelerator. The thread of each queue issues its
 * instructions in the order in which a device without streams would execute them. If an instruction
 * needs a result of the other stream, its stream awaits the mark that was set after that result.
 * The host itself waits only at the end of a step.
 *
 * A *stretch* is a run of consecutive instructions of the compute queue, within one section and one
 * micro-batch, that involve nothing but the device: kernels, copies and sums of what it holds. None
 * of its instructions but the first waits for the other queue, none but the last is waited for, and
 * none depends on the step. Loads, exchanges, the loss (which is divided by the step's targets) and
 * updates are therefore never part of one. So what a stretch does in a given slot is the same in
 * every step: the first time its instructions are issued one by one, the second time they are
 * recorded, and from then on the recording is played.
 *
 * A device that computes in the host's memory has neither: struct streams and struct recordings are
 * then NULL, and every function here but streams_stage accepts that and does nothing. */
#ifndef WORKER_INTERPRETER_ISSUE_H
#define WORKER_INTERPRETER_ISSUE_H

#include "common/program/program.h"
#include "worker/kernels/accelerator.h"

struct interpreter;
struct streams;

/* Open a stream per queue that the program uses, with marks and pinned memory for its inputs. Lends
 * the program. *out is NULL without an accelerator. Errors of the accelerator. */
int streams_open(const struct program *program, const struct accelerator *accelerator,
                 struct streams **out, struct error *err);
/* Wait for the streams' work, then close them. Accepts NULL. */
void streams_close(struct streams *streams);

/* From here on the calling thread issues to this queue's stream, or to the one for copies to the
 * host beside both queues, until streams_leave. */
void streams_enter(struct streams *streams, enum queue queue);
void streams_enter_beside(struct streams *streams);
void streams_leave(struct streams *streams);
/* Make the stream wait for everything that the instruction at the cursor needs from the other
 * queue, all of which has been issued. */
void streams_await(struct streams *streams, const struct program_walk *walk);
/* Set the instruction's mark, if any; called after it has been issued. */
void streams_pass(struct streams *streams, int index);
/* Wait until the calling thread's stream has completed all its work. Returns the first error in
 * it. */
int streams_finish(struct streams *streams, struct error *err);

/* Begin a step, which frees the staging memory; no stream may have work. */
void streams_begin(struct streams *streams);
/* Pinned memory for one load, from which the compute stream reads until the end of the step. There
 * is as much as all loads of a step need. */
void *streams_stage(struct streams *streams, size_t bytes);

struct recordings;

/* Find the stretches of a program, which is lent. NULL without an accelerator. */
struct recordings *recordings_open(const struct program *program,
                                   const struct accelerator *accelerator);
/* Destroy all recordings; nothing of them may be under way. Accepts NULL. */
void recordings_close(struct recordings *recordings);

/* Execute the instruction at the walk's cursor, or the whole stretch that begins there, and leave
 * the walk at the last one executed. Errors of the fabric. */
int issue_next(struct interpreter *in, struct program_walk *walk, struct error *err);

#endif
