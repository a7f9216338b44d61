/* chains.h - what blocks take at least on the first stages of a pipeline and on the last, however
 * they are divided: each block takes the least of its choices on the stage that it lies on, and
 * each crossing the least of its own.
 *
 * A stage has so much memory and no more. For every price of a byte no way to run its blocks is
 * shorter than each one's least of time and priced bytes together, less the price of all bytes
 * there are (a Lagrangian bound); of several prices the one counts by which that is most. */
#ifndef COORDINATOR_PLANNER_EXACT_CHAINS_H
#define COORDINATOR_PLANNER_EXACT_CHAINS_H

#include <stddef.h>

struct crossings;
struct instance;

/* Of all divisions the least of either; infinity: there is none. */
struct chain {
    double sum_s, longest_s; /* of the stages */
};

struct chains {
    int stages, blocks;
    double per_second, per_once; /* what T and u count: 1 and 0 are seconds of a micro-batch */
    const struct crossings *crossings;
    double per_crossing; /* what seconds of crossings count */
    /* (optional) a stage waits for the forward of all blocks before it, and all behind it for it */
    const struct least *others;
    struct price *prices;        /* [stage * PRICES + price] */
    struct chain *heads, *tails; /* [stage * (blocks + 1) + block] */
};

/* member: the least of struct choices that counts where memory does not. Divisions in which a stage
 * takes longer than most_s are left out. */
void chains_init(struct chains *chains, const struct instance *instance, size_t member,
                 double per_crossing, double most_s);
/* Of T and u by what they count, and memory counts: of choices that have been filled. Where u
 * counts, so do the forward of a micro-batch on the stages before and all of it on those behind. */
void chains_init_priced(struct chains *chains, const struct instance *instance, double per_second,
                        double per_once, double most_s);
void chains_finish(struct chains *chains);
/* Of blocks [first, end) on this stage; infinity: they cannot lie there. */
double chains_own(const struct chains *chains, int stage, int first, int end);
/* Of blocks [0, end) on the stages before this one; of [first, all) on it and those behind. */
const struct chain *chains_head(const struct chains *chains, int stage, int end);
const struct chain *chains_tail(const struct chains *chains, int stage, int first);

#endif
