/* walk.h - takes one queue through a step, and says what it has to wait for.
 *
 * All instructions that run in a step, on both queues, are numbered from 1 in the order of the
 * step. Because each queue runs in this order, the number of the last instruction that a queue has
 * finished tells the other all it needs to know. Used by the executor and the simulation. */
#ifndef COMMON_PROGRAM_WALK_H
#define COMMON_PROGRAM_WALK_H

#include "common/program/program.h"

struct program_walk {
    const struct program *program;
    enum queue queue;
    enum program_kind kind;
    struct program_cursor cursor;
    uint64_t number; /* of the instruction at the cursor */
    uint64_t *runs;  /* per instruction of the other queue: number of its latest run, or 0 */
};

/* Borrows the program. */
void walk_init(struct program_walk *walk, const struct program *program, enum queue queue);
void walk_finish(struct program_walk *walk);
/* Go to the beginning of a step, before its first instruction. Allocates nothing. */
void walk_begin(struct program_walk *walk, enum program_kind kind);
/* Advance the cursor to this queue's next instruction; false at the end of the step. */
bool walk_next(struct program_walk *walk);
/* The number that the other queue must have finished before the instruction at the cursor may
 * begin; 0: none. */
uint64_t walk_awaits(const struct program_walk *walk);

#endif
