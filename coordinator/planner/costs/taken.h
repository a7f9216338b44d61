/* taken.h - bytes of a stage on one rank, accumulated from its parts.
 *
 * The sum is described in words in dump.c. It is computed wherever labels are joined, hence
 * inline. */
#ifndef COORDINATOR_PLANNER_COSTS_TAKEN_H
#define COORDINATOR_PLANNER_COSTS_TAKEN_H

#include "coordinator/planner/costs/part_cost.h"

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
