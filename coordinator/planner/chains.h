/* chains.h - what blocks take at least on the first stages of a pipeline and on the last, however
 * they are divided: each block takes the least of its choices on the stage that it lies on. */
#ifndef COORDINATOR_PLANNER_CHAINS_H
#define COORDINATOR_PLANNER_CHAINS_H

#include <stddef.h>

struct instance;

/* Of all divisions the least of either, in seconds of one micro-batch; infinity: there is none. */
struct chain {
    double sum_s, longest_s; /* of the stages */
};

struct chains {
    int blocks;
    struct chain *heads, *tails; /* [stage * (blocks + 1) + block] */
};

/* member: the least of struct choices that counts. Divisions in which a stage takes longer than
 * most_s are left out. */
void chains_init(struct chains *chains, const struct instance *instance, size_t member,
                 double most_s);
void chains_finish(struct chains *chains);
/* Of blocks [0, end) on the stages before this one; of [first, all) on it and those behind. */
const struct chain *chains_head(const struct chains *chains, int stage, int end);
const struct chain *chains_tail(const struct chains *chains, int stage, int first);

#endif
