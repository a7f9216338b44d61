/* tradeoff.c - compares every plan with every other, which is quick enough for a few hundred. */
#include "coordinator/planner/tradeoff.h"

#include "common/base/memory.h"

#include <stdlib.h>

static bool is_beaten(const struct plan *plan, const struct plan *by)
{
    double slower_s = plan->predicted.step_time_s - by->predicted.step_time_s;
    double more_bytes =
        (double)plan->predicted.memory_bytes_max - (double)by->predicted.memory_bytes_max;
    int more_devices = plan_ranks(plan) - plan_ranks(by);
    return slower_s >= 0 && more_bytes >= 0 && more_devices >= 0 &&
           (slower_s > 0 || more_bytes > 0 || more_devices > 0);
}

static bool is_equal(const struct plan *a, const struct plan *b)
{
    return a->predicted.step_time_s == b->predicted.step_time_s &&
           a->predicted.memory_bytes_max == b->predicted.memory_bytes_max &&
           plan_ranks(a) == plan_ranks(b);
}

static int by_devices(const void *first, const void *second)
{
    const struct plan *a = *(const struct plan *const *)first,
                      *b = *(const struct plan *const *)second;
    if (plan_ranks(a) != plan_ranks(b))
        return plan_ranks(b) - plan_ranks(a);
    return a->predicted.step_time_s < b->predicted.step_time_s ? -1 : 1;
}

const struct plan **tradeoff_find(const struct planner_result *result, size_t *count)
{
    const struct plan **plans = xcalloc(result->count, sizeof(struct plan *));
    *count = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct plan *plan = result->candidates[i].plan;
        bool kept = result->candidates[i].fits;
        for (size_t j = 0; j < result->count && kept; j++) {
            const struct plan *other = result->candidates[j].plan;
            kept = !result->candidates[j].fits ||
                   (!is_beaten(plan, other) && (j >= i || !is_equal(plan, other)));
        }
        if (kept)
            plans[(*count)++] = plan;
    }
    if (*count > 1)
        qsort(plans, *count, sizeof *plans, by_devices);
    return plans;
}
