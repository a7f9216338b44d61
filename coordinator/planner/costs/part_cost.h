/* part_cost.h - the cost of a lowered part on a rank: seconds, and bytes in the arena.
 *
 * Communication hides behind a part's own computing as far as that lasts, and both are slowed
 * meanwhile by the profile's factor. Weights are gathered while the part's forward computes, and
 * gradients are reduced beside its backward. Nothing hides behind another part, so parts can be
 * added, and their sum is no less than a simulation finds. */
#ifndef COORDINATOR_PLANNER_COSTS_PART_COST_H
#define COORDINATOR_PLANNER_COSTS_PART_COST_H

#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"

/* Prices of the instructions on each queue, summed up as if one followed the other. */
struct part_seconds {
    double forward[QUEUES], backward[QUEUES]; /* per micro-batch */
    /* once per step: before its forwards, and behind its backwards */
    double weights[QUEUES], reduce[QUEUES];
    double other; /* once per step, on the compute queue */
};

/* Bytes of a part on one rank. */
struct part_bytes {
    uint64_t state, saved, communication; /* communication: the part that adds up over parts */
    /* half of a double buffer for communication; over several parts the largest counts */
    uint64_t beside;
    /* Transient bytes: of a block's forward without its output; of everything else; and, of a
     * joint, what is passed on from the block before it and is alive during that block's forward
     * too. */
    uint64_t forward, other, passing;
};

struct part_cost {
    double forward_s, backward_s; /* per micro-batch */
    double once_s;                /* per step */
    double least_s;               /* forward and backward on the fastest rank, compute queue only */
    /* What the fastest rank spends at least in a step: per micro-batch, and once. Queues that take
     * C and M alone take C + (factor - 1) M or more together: while both run, each is slowed by the
     * factor, so hiding 1 s of M costs factor - 1. */
    double least_both_s, least_once_s;
    /* The part of both, and of backward_s, that kernels take even without any work. */
    double fixed_s, fixed_back_s;
    struct part_seconds seconds;
    struct part_bytes bytes; /* of every number the largest of any rank */
    /* [rank of the site], lent; NULL: not told apart (site.h), or equal on all ranks */
    const struct part_bytes *ranks;
};

/* Price a lowered part. */
struct part_cost part_cost_price(const struct pricing *pricing, const struct lowered_part *part);
/* Add the seconds of a part that follows; bytes are left alone. */
void part_cost_add(struct part_cost *sum, const struct part_cost *cost);
/* Combine two ranks of one stage: the larger of every number, except those that are least, of which
 * the smaller. */
void part_cost_larger(struct part_cost *most, const struct part_cost *cost);
/* Bytes on this rank, or on any if ranks are not told apart. */
const struct part_bytes *part_cost_bytes(const struct part_cost *cost, int rank);
/* Whether no rank needs more of anything in a than in b. */
bool part_cost_no_larger(const struct part_cost *a, const struct part_cost *b, int ranks);
/* Subtract what happens once per step, and the state, of the first block, whose weights were
 * lowered with this part; what is left of it at least is not known. Per-rank state is left to the
 * caller. factor: slowdown of overlapping computing and communication. */
void part_cost_leave_out(struct part_cost *cost, const struct part_cost *first, double factor);

/* Bytes of a stage on one rank are accumulated from its parts: the sum that is described in words
 * in dump.c. It is computed wherever labels are joined, hence inline. */

/* Bytes of a run of blocks, without base and crossings. */
struct taken {
    uint64_t bytes; /* state, slots times saved, and communication */
    /* largest transient, except the last block's forward where something is passed on */
    uint64_t transient;
    uint64_t forward; /* transient of the last block's forward */
    uint64_t beside;  /* largest half of a double buffer; the stage has two */
};

static inline uint64_t taken_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The part that adds up. slots: micro-batches in flight. */
static inline uint64_t taken_sum(const struct part_bytes *part, uint64_t slots)
{
    return part->state + slots * part->saved + part->communication;
}

static inline struct taken taken_block(const struct part_bytes *block, uint64_t slots)
{
    return (struct taken){taken_sum(block, slots), taken_larger(block->other, block->forward),
                          block->forward, block->beside};
}

/* Two runs and what joins them. */
static inline struct taken taken_join(const struct taken *left, const struct taken *right,
                                      const struct part_bytes *joint, uint64_t slots)
{
    return (struct taken){
        .bytes = left->bytes + right->bytes + taken_sum(joint, slots),
        .transient = taken_larger(taken_larger(left->transient, right->transient),
                                  taken_larger(joint->other, left->forward + joint->passing)),
        .forward = right->forward,
        .beside = taken_larger(taken_larger(left->beside, right->beside), joint->beside),
    };
}

/* A stage that consists of the run alone. */
static inline uint64_t taken_total(const struct taken *run)
{
    return run->bytes + run->transient + 2 * run->beside;
}

/* A stage with its base and crossings. */
static inline uint64_t taken_stage(const struct taken *run, const struct part_bytes *base,
                                   const struct part_bytes *into, const struct part_bytes *out_of,
                                   uint64_t slots)
{
    struct taken all = {
        .bytes =
            run->bytes + taken_sum(base, slots) + taken_sum(into, slots) + taken_sum(out_of, slots),
        .transient = taken_larger(taken_larger(taken_larger(run->transient, base->other),
                                               taken_larger(into->other, out_of->other)),
                                  run->forward + out_of->passing),
        .beside = taken_larger(taken_larger(run->beside, base->beside),
                               taken_larger(into->beside, out_of->beside)),
    };
    return taken_total(&all);
}

#endif
