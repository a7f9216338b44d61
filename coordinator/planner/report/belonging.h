/* belonging.h - which block a program's instructions and buffers belong to, also outside forward
 * and backward. The reduction of a gradient belongs to the block that owns the weight, and so does
 * what carries a weight to where it is used. */
#ifndef COORDINATOR_PLANNER_REPORT_BELONGING_H
#define COORDINATOR_PLANNER_REPORT_BELONGING_H

#include "common/program/program.h"

/* The block of each buffer and instruction; -1: it belongs to none in particular. */
struct belonging {
    int *buffers, *instructions;
};

void belonging_init(struct belonging *belonging, const struct program *program);
void belonging_finish(struct belonging *belonging);

#endif
