/* part_cost.h - what a lowered part takes on a rank: seconds, and bytes in the arena.
 *
 * What runs beside a part's computing hides behind it as far as it is that long, and both are
 * slowed meanwhile by the profile's factor. Weights come while the part's forward computes,
 * gradients leave beside its backward; a part alone hides nothing behind another one, so that
 * parts add up, to no less than a simulation finds. */
#ifndef COORDINATOR_PLANNER_COSTS_PART_COST_H
#define COORDINATOR_PLANNER_COSTS_PART_COST_H

#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"

/* Prices of instructions by queue, one after the other. */
struct part_seconds {
    double forward[QUEUES], backward[QUEUES]; /* one micro-batch */
    double weights[QUEUES], reduce[QUEUES];   /* once: before the step's forwards, behind its
                                                 backwards */
    double other;                             /* once, on the queue of computing */
};

/* Bytes of a part on one rank. */
struct part_bytes {
    uint64_t state, saved, communication; /* communication: what adds up */
    uint64_t beside; /* of a room, what is there twice: of many parts the largest counts */
    /* Transients: of a block's forward, without its output; of all else; and what passes on from
     * the block before a joint, alive in that block's forward too. */
    uint64_t forward, other, passing;
};

struct part_cost {
    double forward_s, backward_s; /* one micro-batch */
    double once_s;                /* per step */
    double least_s; /* forward and backward of the rank that takes least, nothing beside counted */
    double fixed_s; /* of both: kernels that have nothing to do would take it too */
    struct part_seconds seconds;
    struct part_bytes bytes;        /* no rank has more of any */
    const struct part_bytes *ranks; /* per rank of the site, lent; NULL: not told apart (site.h), or
                                       all have the same */
};

struct part_cost part_cost_price(const struct pricing *pricing, const struct lowered_part *part);
/* Seconds of parts that follow each other. */
void part_cost_add(struct part_cost *sum, const struct part_cost *cost);
/* Of two ranks of one stage the larger of every number, and of the least the smaller. */
void part_cost_larger(struct part_cost *most, const struct part_cost *cost);
/* Of this rank, or of any where ranks are not told apart. */
const struct part_bytes *part_cost_bytes(const struct part_cost *cost, int rank);
/* Does no rank have more of anything than by the other cost? */
bool part_cost_no_larger(const struct part_cost *a, const struct part_cost *b, int ranks);
/* What happens once, without that of the block whose weights were lowered too; state of ranks is
 * the caller's. factor: by how much computing and communication slow each other. */
void part_cost_leave_out(struct part_cost *cost, const struct part_cost *first, double factor);

#endif
