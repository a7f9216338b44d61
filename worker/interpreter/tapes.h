/* tapes.h - stretches of a step that are issued to a device as one recorded unit.
 *
 * A stretch is a run of consecutive instructions of the compute queue, within one section and one
 * micro-batch, that involve nothing but the device: kernels, copies and sums of what it holds. None
 * of its instructions but the first waits for the other queue, none but the last is waited for, and
 * none depends on the step. Loads, exchanges, the loss (which is divided by the step's targets) and
 * updates are therefore never part of one. So what a stretch does in a given slot is the same in
 * every step: the first time its instructions are issued one by one, the second time they are
 * recorded, and from then on the recording is played.
 *
 * Without an accelerator there are no stretches: struct tapes is NULL. */
#ifndef WORKER_INTERPRETER_TAPES_H
#define WORKER_INTERPRETER_TAPES_H

#include "common/program/program.h"
#include "worker/kernels/accelerator.h"

struct tapes;

/* Find the stretches of a program, which is lent. NULL without an accelerator. */
struct tapes *tapes_open(const struct program *program, const struct accelerator *accelerator);
/* Destroy all recordings; nothing of them may be under way. Accepts NULL. */
void tapes_close(struct tapes *tapes);

/* The number of instructions in the stretch that begins at instruction `first`, at least 2; 1 if
 * none begins there. Accepts NULL. */
int tapes_stretch(const struct tapes *tapes, int first);
/* Run the stretch that begins at `first` in a slot, in the calling thread's lane. `issue` is called
 * to issue its instructions when there is no recording to play. If the device cannot record, the
 * reason is logged and all stretches that have no recording are issued one by one from then on. */
void tapes_run(struct tapes *tapes, int first, int slot, void (*issue)(void *context),
               void *context);

#endif
