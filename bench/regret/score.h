/* score.h - how good predictions were, from pairs of what was predicted and what was measured. */
#ifndef BENCH_REGRET_SCORE_H
#define BENCH_REGRET_SCORE_H

#include <stddef.h>

/* Of one plan: seconds of a step. */
struct verdict {
    double predicted, measured;
};

/* |predicted - measured| / measured. */
double score_error(const struct verdict *verdict);
/* Rank correlation: of all pairs of plans the share that the prediction puts in the right order
 * less the share that it puts in the wrong one, pairs that are equal in one of both aside
 * (Kendall's tau-b; Kendall 1945). 1 for fewer than two plans, 0 where all are equal. */
double score_tau(const struct verdict *verdicts, size_t count);
/* The measured time of the chosen plan over the least of all plans, minus 1. */
double score_regret(const struct verdict *verdicts, size_t count, size_t chosen);

#endif
