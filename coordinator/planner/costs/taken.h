/* taken.h - bytes of a stage on one rank: what its parts, one by one, come to.
 *
 * dump.c says the sum in words. It is asked for wherever labels are joined: inline. */
#ifndef COORDINATOR_PLANNER_COSTS_TAKEN_H
#define COORDINATOR_PLANNER_COSTS_TAKEN_H

#include "coordinator/planner/costs/part_cost.h"

/* By a run of blocks, without base and crossings. */
struct taken {
    uint64_t bytes;     /* state, slots x saved, communication */
    uint64_t transient; /* of all rooms, but the last block's forward where more passes on */
    uint64_t forward;   /* of the last block's forward */
    uint64_t beside;    /* of the room that has most; the stage has it twice */
};

static inline uint64_t taken_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What adds up. slots: micro-batches in flight. */
static inline uint64_t taken_sum(const struct part_bytes *part, uint64_t slots)
{
    return part->state + slots * part->saved + part->communication;
}

static inline struct taken taken_block(const struct part_bytes *block, uint64_t slots)
{
    return (struct taken){taken_sum(block, slots), taken_larger(block->other, block->forward),
                          block->forward, block->beside};
}

/* By two runs and what joins them. */
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

/* Of a stage with nothing else. */
static inline uint64_t taken_total(const struct taken *run)
{
    return run->bytes + run->transient + 2 * run->beside;
}

/* Of a stage with its base and its crossings. */
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
