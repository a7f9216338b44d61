/* pipeline_bound.c - see pipeline_bound.h. */
#include "coordinator/planner/exact/pipeline_bound.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PRECISION 1e-3 /* relative */

static double between(const struct pipeline *pipeline, const double *sums, int stage, int first,
                      int end)
{
    const double *of = &sums[(size_t)stage * ((size_t)pipeline->blocks + 1)];
    return of[end] - of[first];
}

/* Extend divisions of the first blocks by a stage. before[b]: the least that a micro-batch takes on
 * the stages of a division of the first b blocks within the limit; infinity: there is none. */
static void add_stage(const struct pipeline *pipeline, int stage, double limit_s,
                      const double *before, double *after)
{
    int m = pipeline->micro_batches;
    for (int end = 0; end <= pipeline->blocks; end++) {
        after[end] = INFINITY;
        for (int first = end - 1; first >= stage; first--) {
            double own_s = between(pipeline, pipeline->pass_s, stage, first, end);
            double step_s =
                pipeline->step_s ? between(pipeline, pipeline->step_s, stage, first, end) : 0;
            if (fmax(m * own_s, step_s) > limit_s)
                break; /* with still more blocks, too */
            if (before[first] + m * own_s <= limit_s)
                after[end] = fmin(after[end], before[first] + own_s);
        }
    }
}

static bool is_possible(const struct pipeline *pipeline, double limit_s)
{
    size_t count = (size_t)pipeline->blocks + 1;
    double *sums = xcalloc(2 * count, sizeof *sums), *before = sums, *after = sums + count;
    for (size_t b = 1; b < count; b++)
        before[b] = INFINITY;
    for (int stage = 0; stage < pipeline->stages; stage++) {
        add_stage(pipeline, stage, limit_s, before, after);
        double *spare = before;
        before = after;
        after = spare;
    }
    bool possible = isfinite(before[pipeline->blocks]);
    free(sums);
    return possible;
}

double pipeline_bound(const struct pipeline *pipeline, double least_s, double most_s)
{
    if (!(least_s < most_s) || is_possible(pipeline, least_s))
        return least_s;
    if (isinf(most_s))
        for (most_s = 2 * least_s; !is_possible(pipeline, most_s); most_s *= 2)
            least_s = most_s;
    while (most_s > least_s * (1 + PRECISION)) {
        double middle_s = (least_s + most_s) / 2;
        if (is_possible(pipeline, middle_s))
            most_s = middle_s;
        else
            least_s = middle_s;
    }
    return least_s;
}
