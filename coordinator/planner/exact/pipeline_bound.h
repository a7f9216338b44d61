/* pipeline_bound.h - lower bound on the step of a pipeline over all divisions of its blocks.
 *
 * On every stage all micro-batches pass one after the other, the first after it has passed the
 * stages before (forwards before it, and after the last one their backwards). So with L of a stage,
 * forward and backward of one micro-batch, a division takes at least the largest sum of L over the
 * stages before a stage plus m times its own. For a limit on that, the division that leaves most to
 * later stages is found block by block, and the least limit by bisection. */
#ifndef COORDINATOR_PLANNER_EXACT_PIPELINE_BOUND_H
#define COORDINATOR_PLANNER_EXACT_PIPELINE_BOUND_H

struct pipeline {
    int stages, blocks, micro_batches;
    /* [stage * (blocks + 1) + block]: sums over the blocks before it, if all were on this stage:
     * seconds of a micro-batch; and (optional) of everything that a stage does in a step */
    const double *pass_s, *step_s;
};

/* No division with a block or more on every stage takes less. Between the bounds, of which least_s
 * is one already; most_s if none takes less than that. */
double pipeline_bound(const struct pipeline *pipeline, double least_s, double most_s);

#endif
