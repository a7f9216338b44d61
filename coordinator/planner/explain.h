/* explain.h - where the time and the memory of a plan go, block by block.
 *
 * A block is described on that rank of its stage whose micro-batch takes longest, from the same
 * programs and prices by which the plan was judged. */
#ifndef COORDINATOR_PLANNER_EXPLAIN_H
#define COORDINATOR_PLANNER_EXPLAIN_H

#include "common/program/program.h"
#include "coordinator/planner/costs/request.h"

/* Seconds of a micro-batch, or of what is done once per step. */
struct explain_seconds {
    double compute;       /* kernels, copies, sums, the optimizer */
    double host, network; /* transfers inside a machine; between machines */
};

/* Values of one block, or of what belongs to none. */
struct explained {
    struct explain_seconds forward, backward, once;
    uint64_t state_bytes, saved_bytes; /* saved: of all slots */
    double host_bytes, network_bytes;  /* sent in a step */
    /* of a block: what its matrix products have to move at least; see matmul_bound() */
    double least_bytes;
};

struct explanation {
    struct explained *blocks; /* [block of the plan] */
    struct explained *rest;   /* [stage]: what belongs to no block */
    uint64_t *other_bytes;    /* [stage]: transients and communication buffers */
    int *ranks;               /* [stage]: the rank that is described */
    int block_count, stage_count;
};

/* Explain a plan whose rank r runs on device r of the request; see shared_cores_order(). -EINVAL:
 * it cannot be lowered. The caller finishes *out in any case. */
int explain_plan(const struct planner_request *request, const struct plan *plan,
                 struct explanation *out, struct error *err);
void explanation_finish(struct explanation *explanation);
/* Add only the bytes of a rank, to blocks[block of the plan] and to the rest. */
void explain_bytes(const struct program *program, struct explained *blocks, struct explained *rest);

/* Seconds in a step of this many micro-batches, one after the other. */
struct explain_seconds explained_step(const struct explained *explained, int micro_batches);
/* The same for everything that a stage does. */
struct explain_seconds explanation_stage(const struct explanation *explanation,
                                         const struct plan *plan, int stage);
/* Bytes sent divided by the least that has to be; 0: nothing has to be sent. */
double explained_distance(const struct explained *explained);
/* What takes the largest share of these seconds: "compute", "host links" or "network". */
const char *explain_bound(const struct explain_seconds *seconds);

/* What matrix products have to move at least, whatever the plan: Al Daas, Ballard, Grigori, Kumar
 * and Rouse, "Tight memory-independent parallel matrix multiplication communication lower bounds"
 * (SPAA 2022, arXiv 2205.13407). Words that some device has to receive for a product with these
 * three sizes, in any order, if each device does an equal part of it and one copy of the three
 * matrices is distributed over all devices before and after. */
double matmul_bound(double first, double second, double third, int devices);

#endif
