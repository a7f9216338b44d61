/* matmul_bound.h - lower bounds on what matrix products have to move, whatever the plan: Al Daas,
 * Ballard, Grigori, Kumar and Rouse, "Tight memory-independent parallel matrix multiplication
 * communication lower bounds" (SPAA 2022, arXiv 2205.13407). */
#ifndef COORDINATOR_PLANNER_REPORT_MATMUL_BOUND_H
#define COORDINATOR_PLANNER_REPORT_MATMUL_BOUND_H

#include "common/graph/graph.h"

/* Words that some device has to receive for a product with these three sizes, in any order, if each
 * device does an equal part of it and one copy of the three matrices is distributed over all
 * devices before and after. */
double matmul_bound(double first, double second, double third, int devices);
/* Words for a block in a step of this many samples: of each of its products the forward one and
 * that of the weight's gradient, each counted separately. Products that read the same input count
 * as one; the product of the input's gradient needs no more than what the other two have brought. A
 * product with another block's weight is left out, since that block moves it. 0: it has no
 * product. */
double matmul_bound_block(const struct graph *graph, int block, int64_t samples, int devices);

#endif
