/* explain.h - where the time and the memory of a plan go, block by block.
 *
 * What is told of a block is of that rank of its stage whose micro-batch takes longest, from the
 * same programs and prices that the plan was judged by. */
#ifndef COORDINATOR_PLANNER_REPORT_EXPLAIN_H
#define COORDINATOR_PLANNER_REPORT_EXPLAIN_H

#include "coordinator/planner/planner.h"

/* Seconds of a micro-batch, or of what is done once a step. */
struct explain_seconds {
    double compute;       /* kernels, copies, sums, the optimizer */
    double host, network; /* what moves inside a machine; between machines */
};

/* Of one block; or of what belongs to none. */
struct explained {
    struct explain_seconds forward, backward, once;
    uint64_t state_bytes, saved_bytes; /* saved: all slots */
    double host_bytes, network_bytes;  /* sent in a step */
    double least_bytes; /* of a block: what its matrix products have to move; see matmul_bound.h */
};

struct explanation {
    struct explained *blocks; /* of the plan's blocks */
    struct explained *rest;   /* per stage: what belongs to no block */
    uint64_t *other_bytes;    /* per stage: transients, and what is on its way */
    int *ranks;               /* per stage: which one it is told of */
    int block_count, stage_count;
};

/* Rank r of the plan runs on device r of the request: see planner_order. -EINVAL: it cannot be
 * lowered. Either way *out is yours to finish. */
int explain_plan(const struct planner_request *request, const struct plan *plan,
                 struct explanation *out, struct error *err);
void explanation_finish(struct explanation *explanation);

/* Seconds of all this in a step of so many micro-batches, one after the other. */
struct explain_seconds explained_step(const struct explained *explained, int micro_batches);
/* The same of all that a stage does. */
struct explain_seconds explanation_stage(const struct explanation *explanation,
                                         const struct plan *plan, int stage);
/* What is sent, over the least that has to be; 0: nothing has to be. */
double explained_distance(const struct explained *explained);
/* What takes most of these seconds: "compute", "host links", "network". */
const char *explain_bound(const struct explain_seconds *seconds);

#endif
