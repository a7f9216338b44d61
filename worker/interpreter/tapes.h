/* tapes.h - stretches of a step that a device is given as one.
 *
 * A stretch is instructions of the queue of computing that follow each other in a section, for a
 * micro-batch, and are the device's alone: kernels, copies and sums of what it holds. Nobody waits
 * for the other queue inside of one, and nothing in it depends on the step: what loads data, takes
 * part in an exchange, divides by the step's targets or updates is in none. So what a stretch does
 * in a slot is the same in every step. The first time it is issued instruction by instruction, the
 * second time it is recorded, and from then on played.
 *
 * Without lanes there are none, struct tapes is NULL, and every instruction is on its own. */
#ifndef WORKER_INTERPRETER_TAPES_H
#define WORKER_INTERPRETER_TAPES_H

#include "common/program/program.h"
#include "worker/kernels/accelerator.h"

struct tapes;

/* The program is lent. NULL without an accelerator. */
struct tapes *tapes_open(const struct program *program, const struct accelerator *accelerator);
/* Accepts NULL. */
void tapes_close(struct tapes *tapes);

/* How many instructions of the queue the stretch has that begins at this one, at least 2; 1: none
 * does. */
int tapes_stretch(const struct tapes *tapes, int first);
/* The stretch that begins there, in this slot and the calling thread's lane; `issue` issues its
 * instructions. Where the device cannot keep them they are issued one by one from then on, and the
 * log says why. */
void tapes_run(struct tapes *tapes, int first, int slot, void (*issue)(void *context),
               void *context);

#endif
