/* walk.h - the way of one queue through a step, and what it has to wait for on it.
 *
 * Every instruction of a step has a number, from 1 on in the order of the step. A queue that says
 * which number it has finished last has said all that the other needs to know. */
#ifndef COMMON_PROGRAM_WALK_H
#define COMMON_PROGRAM_WALK_H

#include "common/program/program.h"

struct program_walk {
    const struct program *program;
    enum queue queue;
    enum program_kind kind;
    struct program_cursor cursor;
    uint64_t number; /* of the instruction at the cursor */
    uint64_t *runs;  /* per instruction of the other queue: the number of its latest run, or 0 */
};

/* The program is lent. */
void walk_init(struct program_walk *walk, const struct program *program, enum queue queue);
void walk_finish(struct program_walk *walk);
/* To the beginning of a step; walk_next leads to the first instruction. Allocates nothing. */
void walk_begin(struct program_walk *walk, enum program_kind kind);
/* The next instruction of this queue; false at the end of the step. */
bool walk_next(struct program_walk *walk);
/* What the other queue must have finished before the instruction at the cursor begins; 0: it may
 * begin. */
uint64_t walk_awaits(const struct program_walk *walk);

#endif
