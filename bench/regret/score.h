/* score.h - scores predictions by pairs of predicted and measured times. */
#ifndef BENCH_REGRET_SCORE_H
#define BENCH_REGRET_SCORE_H

#include <stddef.h>

/* Step times of one plan, in seconds. */
struct verdict {
    double predicted, measured;
};

/* |predicted - measured| / measured. */
double score_error(const struct verdict *verdict);
/* Rank correlation (Kendall's tau-b; Kendall 1945): the pairs of plans that the prediction puts in
 * the right order less those in the wrong order, normalized with regard to ties. 1 for fewer than
 * two plans, 0 when all predictions or all measurements are equal. */
double score_tau(const struct verdict *verdicts, size_t count);
/* The measured time of the chosen plan over that of the fastest plan, minus 1. */
double score_regret(const struct verdict *verdicts, size_t count, size_t chosen);

#endif
