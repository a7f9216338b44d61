/* lower.h - graph + plan -> the program of one rank.
 *
 * Redistribution is inserted by one routine: between operations, between gradients, between
 * stages, and from where gradients arise to where the optimizer keeps its slices. The same
 * input gives the same program everywhere: its hash travels with an assignment. */
#ifndef COMMON_PROGRAM_LOWER_H
#define COMMON_PROGRAM_LOWER_H

#include "common/program/program.h"

/* The graph is lent to the program. -EINVAL: the plan is not one that can be lowered; the
 * sentence is plan_check's. */
int lower(const struct graph *graph, const struct plan *plan, int rank, struct program **out,
          struct error *err);

#endif
