/* steps.c - a curve that thins itself out, and ends in a window of single steps.
 *
 * A step that leaves the window stays if it is a multiple of the stride. When there are too many,
 * the stride doubles and every second point before the window is dropped: so no point ever moves,
 * and a run of any length has between half of them and all of them, evenly spaced. */
#include "coordinator/telemetry/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/telemetry/measured.h"

#define RATE_STEPS 16
#define NONE UINT64_MAX

void steps_init(struct steps *steps)
{
    *steps = (struct steps){.stride = 1, .changed_from = NONE, .gone_from = NONE};
}

void steps_finish(struct steps *steps)
{
    free(steps->points);
    steps_init(steps);
}

static int step_check(const struct step_record *record, struct error *err)
{
    if (record->step == 0)
        return error_set(err, -EINVAL, "a step's record has step 0; steps count from 1");
    if (!isfinite(record->time_s) || record->time_s <= 0)
        return error_set(err, -EINVAL, "step %llu took %g s; it must be more than 0",
                         (unsigned long long)record->step, record->time_s);
    return 0;
}

static void step_lower(uint64_t *from, uint64_t step)
{
    *from = step < *from ? step : *from;
}

static void steps_begin_epoch(struct steps *steps, const struct step_record *record)
{
    steps->epoch = record->epoch;
    while (steps->count && steps->points[steps->count - 1].step >= record->step)
        steps->count--;
    step_lower(&steps->changed_from, record->step);
}

static size_t steps_window_first(const struct steps *steps)
{
    return steps->count > STEPS_WINDOW ? steps->count - STEPS_WINDOW : 0;
}

/* Drop points[from, to) that are no multiples of the stride. */
static void steps_thin_out(struct steps *steps, size_t from, size_t to)
{
    size_t kept = from;
    for (size_t i = from; i < steps->count; i++) {
        if (i >= to || steps->points[i].step % steps->stride == 0)
            steps->points[kept++] = steps->points[i];
        else
            step_lower(&steps->gone_from, steps->points[i].step);
    }
    steps->count = kept;
}

/* Insert a point before points[at], or at the end. */
static void steps_insert(struct steps *steps, size_t at, const struct step_record *record)
{
    size_t before = steps_window_first(steps);
    steps->points = grow(steps->points, steps->count, &steps->capacity, sizeof *steps->points);
    struct step_point *point = &steps->points[at];
    memmove(point + 1, point, (steps->count++ - at) * sizeof *point);
    *point = (struct step_point){.step = record->step,
                                 .epoch = record->epoch,
                                 .loss = record->loss,
                                 .gradient_norm = record->gradient_norm,
                                 .time_s = record->time_s,
                                 .tokens = record->tokens,
                                 .end_ms = record->end_ms};
    step_lower(&steps->changed_from, record->step);
    size_t first = steps_window_first(steps);
    if (first > before)
        steps_thin_out(steps, before, first);
    first = steps_window_first(steps);
    if (first > STEPS_CURVE) {
        steps->stride *= 2;
        steps_thin_out(steps, 0, first);
    }
}

/* A step that was heard of after later ones: if no later epoch trained it again, the curve lacks
 * it. Returns whether it did. */
static bool steps_fill(struct steps *steps, const struct step_record *record)
{
    size_t at = steps->count;
    while (at > 0 && steps->points[at - 1].step > record->step)
        at--;
    bool lacks = at < steps->count && steps->points[at].epoch >= record->epoch &&
                 (at == 0 || (steps->points[at - 1].step < record->step &&
                              steps->points[at - 1].epoch <= record->epoch));
    lacks = lacks && (at >= steps_window_first(steps) || record->step % steps->stride == 0);
    if (lacks)
        steps_insert(steps, at, record);
    return lacks;
}

/* Merge another rank's report of a step that is in the window. */
static void steps_merge(struct steps *steps, struct step_point *point,
                        const struct step_record *record)
{
    bool knows = isnan(point->loss) && !isnan(record->loss);
    bool slower = record->time_s > point->time_s, later = record->end_ms > point->end_ms;
    if (knows)
        point->loss = record->loss;
    if (isnan(point->gradient_norm))
        point->gradient_norm = record->gradient_norm;
    if (slower)
        point->time_s = record->time_s;
    if (later)
        point->end_ms = record->end_ms;
    if (knows || slower || later)
        step_lower(&steps->changed_from, point->step);
}

int steps_add(struct steps *steps, const struct step_record *record, struct error *err)
{
    int rc = step_check(record, err);
    if (rc < 0)
        return rc;
    if (record->epoch < steps->epoch && !steps_fill(steps, record))
        return error_set(err, -ESTALE, "step %llu is of epoch %u, the job is in %u",
                         (unsigned long long)record->step, record->epoch, steps->epoch);
    if (record->epoch < steps->epoch)
        return 0;
    if (record->epoch > steps->epoch)
        steps_begin_epoch(steps, record);
    const struct step_point *last = steps_last(steps);
    if (!last || record->step > last->step) {
        steps_insert(steps, steps->count, record);
        return 0;
    }
    for (size_t i = steps->count; i-- > steps_window_first(steps);) {
        if (steps->points[i].step != record->step)
            continue;
        steps_merge(steps, &steps->points[i], record);
        return 0;
    }
    if (steps_fill(steps, record))
        return 0;
    return error_set(err, -ESTALE, "step %llu is over, the job is at %llu",
                     (unsigned long long)record->step, (unsigned long long)last->step);
}

const struct step_point *steps_last(const struct steps *steps)
{
    return steps->count ? &steps->points[steps->count - 1] : NULL;
}

const struct step_point *steps_window(const struct steps *steps, size_t *count)
{
    size_t first = steps_window_first(steps);
    *count = steps->count - first;
    return steps->points + first;
}

double steps_tokens_per_s(const struct steps *steps)
{
    double tokens = 0, time_s = 0;
    size_t first = steps->count > RATE_STEPS ? steps->count - RATE_STEPS : 0;
    for (size_t i = first; i < steps->count; i++) {
        tokens += (double)steps->points[i].tokens;
        time_s += steps->points[i].time_s;
    }
    return time_s > 0 ? tokens / time_s : 0;
}

double steps_time_median_s(const struct steps *steps)
{
    double times[STEPS_WINDOW];
    size_t count;
    const struct step_point *window = steps_window(steps, &count);
    for (size_t i = 0; i < count; i++)
        times[i] = window[i].time_s;
    return median(times, count);
}

void steps_saved(struct steps *steps)
{
    steps->changed_from = steps->gone_from = NONE;
}

/* The largest power of two that divides the step. */
static uint64_t step_stride(uint64_t step)
{
    return step & -step;
}

#define STRIDE_POINTS 64 /* as many tell of a stride; where it is not 1, there are more */

/* What is before the window tells by what stride it was thinned out. */
static uint64_t steps_stride(const struct steps *steps)
{
    size_t first = steps_window_first(steps);
    uint64_t stride = first < STRIDE_POINTS ? 1 : UINT64_MAX;
    for (size_t i = 0; i < first; i++)
        stride = step_stride(steps->points[i].step) < stride ? step_stride(steps->points[i].step)
                                                             : stride;
    return stride;
}

void steps_restore(struct steps *steps, const struct step_point *points, size_t count)
{
    steps_finish(steps);
    steps->points = xcalloc(count, sizeof *points);
    steps->count = steps->capacity = count;
    if (count == 0)
        return;
    memcpy(steps->points, points, count * sizeof *points);
    steps->epoch = points[count - 1].epoch;
    steps->stride = steps_stride(steps);
}

void steps_release(struct steps *steps)
{
    size_t first = steps_window_first(steps);
    steps->count -= first;
    if (first > 0)
        memmove(steps->points, steps->points + first, steps->count * sizeof *steps->points);
    steps->points = xrealloc(steps->points, steps->count * sizeof *steps->points);
    steps->capacity = steps->count;
}
