/* chains.h - lower bounds on the first and on the last stages of a pipeline for every division of
 * the blocks: each block takes the least of its choices on its stage, and each crossing the least
 * of its own.
 *
 * Memory is accounted for by Lagrangian relaxation: for any price per byte, the cheapest choice of
 * each block by time plus priced bytes, summed over the stage, less the price of all available
 * bytes, is a lower bound on the stage's time. Of several prices the one that gives the largest
 * bound counts. */
#ifndef COORDINATOR_PLANNER_EXACT_CHAINS_H
#define COORDINATOR_PLANNER_EXACT_CHAINS_H

#include <stddef.h>

struct crossings;
struct instance;

/* The minimum of each value over all divisions; infinity: there is no division. */
struct chain {
    double sum_s, longest_s; /* longest_s: of the slowest stage */
};

struct chains {
    int stages, blocks;
    /* weights of T and u in what is summed: 1 and 0 give seconds per micro-batch */
    double per_second, per_once;
    const struct crossings *crossings;
    double per_crossing; /* weight of seconds spent in crossings */
    /* (optional) if set, a stage's time includes the forward of all blocks before it and the whole
     * micro-batch on all blocks after it */
    const struct least *others;
    struct price *prices;        /* [stage * PRICES + price] */
    struct chain *heads, *tails; /* [stage * (blocks + 1) + block] */
};

/* `member` is the offset in struct choices of the minimum to use; memory is ignored. Divisions with
 * a stage slower than most_s are excluded. */
void chains_init(struct chains *chains, const struct instance *instance, size_t member,
                 double per_crossing, double most_s);
/* The same with no limit and no crossings, and with others. */
void chains_init_among(struct chains *chains, const struct instance *instance, size_t member,
                       const struct least *others);
/* Minimize per_second T + per_once u, with memory accounted for. The choices must have been filled.
 * If per_once is positive, a stage's time includes the forward of a micro-batch on the stages
 * before it and the whole micro-batch on those after it. */
void chains_init_priced(struct chains *chains, const struct instance *instance, double per_second,
                        double per_once, double most_s);
void chains_finish(struct chains *chains);
/* Bound for blocks [first, end) on this stage; infinity: they cannot be there. */
double chains_own(const struct chains *chains, int stage, int first, int end);
/* Head: bound for blocks [0, end) on the stages before `stage`. Tail: bound for the blocks from
 * `first` on, on `stage` and those after it. */
const struct chain *chains_head(const struct chains *chains, int stage, int end);
const struct chain *chains_tail(const struct chains *chains, int stage, int first);

#endif
