/* score.c - computes the scores; correlation compares every pair of plans. */
#include "bench/regret/score.h"

#include <math.h>

double score_error(const struct verdict *verdict)
{
    return fabs(verdict->predicted - verdict->measured) / verdict->measured;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

double score_tau(const struct verdict *verdicts, size_t count)
{
    double agreeing = 0, unlike_predicted = 0, unlike_measured = 0;
    if (count < 2)
        return 1;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            int predicted = order(verdicts[i].predicted, verdicts[j].predicted);
            int measured = order(verdicts[i].measured, verdicts[j].measured);
            agreeing += predicted * measured;
            unlike_predicted += predicted != 0;
            unlike_measured += measured != 0;
        }
    double unlike = sqrt(unlike_predicted * unlike_measured);
    return unlike > 0 ? agreeing / unlike : 0;
}

double score_regret(const struct verdict *verdicts, size_t count, size_t chosen)
{
    double best = verdicts[chosen].measured;
    for (size_t i = 0; i < count; i++)
        best = fmin(best, verdicts[i].measured);
    return verdicts[chosen].measured / best - 1;
}
