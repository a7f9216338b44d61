/* belonging.h - whose a program's instructions and buffers are, block by block: also those outside
 * forward and backward. A gradient's reduction is of the block that owns the weight, and so is what
 * carries a weight to where it is used. */
#ifndef COORDINATOR_PLANNER_REPORT_BELONGING_H
#define COORDINATOR_PLANNER_REPORT_BELONGING_H

#include "common/program/program.h"

/* Per buffer and instruction a block; -1: it is of all. */
struct belonging {
    int *buffers, *instructions;
};

void belonging_init(struct belonging *belonging, const struct program *program);
void belonging_finish(struct belonging *belonging);

#endif
