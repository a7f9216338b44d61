/* matmul_bound.h - what matrix products have to move, whatever the plan: Al Daas, Ballard, Grigori,
 * Kumar and Rouse, "Tight memory-independent parallel matrix multiplication communication lower
 * bounds" (SPAA 2022, arXiv 2205.13407). */
#ifndef COORDINATOR_PLANNER_REPORT_MATMUL_BOUND_H
#define COORDINATOR_PLANNER_REPORT_MATMUL_BOUND_H

#include "common/graph/graph.h"

/* Words that some device has to receive for a product of these three sizes, in any order, if each
 * does an equal part of it, and of the three matrices one copy begins and ends on all of them
 * together. */
double matmul_bound(double first, double second, double third, int devices);
/* Of a block in a step of so many samples: of each of its products the forward one and that of the
 * weight's gradient, every one for itself. Products that read the same input count as one; that of
 * the input's gradient needs no more than what the two have brought. One by another block's weight
 * is left out: that block moves it. 0: it has no product. */
double matmul_bound_block(const struct graph *graph, int block, int64_t samples, int devices);

#endif
