/* steps.c - a window of single steps, and a curve that thins itself out.
 *
 * A step enters the curve when the next one begins, so that its ranks have had time to report. When
 * the curve is full, every second point is dropped and the stride doubles: the curve stays between
 * half full and full over a run of any length, with evenly spaced points. */
#include "coordinator/telemetry/steps.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "coordinator/telemetry/measured.h"

#define RATE_STEPS 16

void steps_init(struct steps *steps)
{
    *steps = (struct steps){.stride = 1};
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

static void steps_begin_epoch(struct steps *steps, const struct step_record *record)
{
    steps->epoch = record->epoch;
    while (steps->count && steps->window[steps->count - 1].step >= record->step)
        steps->count--;
    while (steps->curve_count && steps->curve[steps->curve_count - 1].step >= record->step)
        steps->curve_count--;
}

static void curve_thin_out(struct steps *steps)
{
    size_t kept = 0;
    steps->stride *= 2;
    for (size_t i = 0; i < steps->curve_count; i++)
        if (steps->curve[i].step % steps->stride == 0)
            steps->curve[kept++] = steps->curve[i];
    steps->curve_count = kept;
}

static void curve_draw(struct steps *steps, const struct step_point *point)
{
    if (point->step % steps->stride != 0)
        return;
    if (steps->curve_count == STEPS_CURVE)
        curve_thin_out(steps);
    if (point->step % steps->stride == 0)
        steps->curve[steps->curve_count++] = *point;
}

static void steps_append(struct steps *steps, const struct step_record *record)
{
    if (steps->count)
        curve_draw(steps, &steps->window[steps->count - 1]);
    if (steps->count == STEPS_WINDOW) {
        memmove(steps->window, steps->window + 1, (STEPS_WINDOW - 1) * sizeof *steps->window);
        steps->count--;
    }
    steps->window[steps->count++] = (struct step_point){.step = record->step,
                                                        .loss = record->loss,
                                                        .time_s = record->time_s,
                                                        .tokens = record->tokens,
                                                        .end_ms = record->end_ms};
}

/* Merge another rank's report of a step that is in the window. */
static void steps_merge(struct step_point *point, const struct step_record *record)
{
    if (isnan(point->loss))
        point->loss = record->loss;
    if (record->time_s > point->time_s)
        point->time_s = record->time_s;
    if (record->end_ms > point->end_ms)
        point->end_ms = record->end_ms;
}

int steps_add(struct steps *steps, const struct step_record *record, struct error *err)
{
    int rc = step_check(record, err);
    if (rc < 0)
        return rc;
    if (record->epoch < steps->epoch)
        return error_set(err, -ESTALE, "step %llu is of epoch %u, the job is in %u",
                         (unsigned long long)record->step, record->epoch, steps->epoch);
    if (record->epoch > steps->epoch)
        steps_begin_epoch(steps, record);
    if (steps->count == 0 || record->step > steps->window[steps->count - 1].step) {
        steps_append(steps, record);
        return 0;
    }
    for (size_t i = steps->count; i-- > 0;) {
        if (steps->window[i].step != record->step)
            continue;
        steps_merge(&steps->window[i], record);
        return 0;
    }
    return error_set(err, -ESTALE, "step %llu is over, the job is at %llu",
                     (unsigned long long)record->step,
                     (unsigned long long)steps->window[steps->count - 1].step);
}

const struct step_point *steps_last(const struct steps *steps)
{
    return steps->count ? &steps->window[steps->count - 1] : NULL;
}

double steps_tokens_per_s(const struct steps *steps)
{
    double tokens = 0, time_s = 0;
    size_t first = steps->count > RATE_STEPS ? steps->count - RATE_STEPS : 0;
    for (size_t i = first; i < steps->count; i++) {
        tokens += (double)steps->window[i].tokens;
        time_s += steps->window[i].time_s;
    }
    return time_s > 0 ? tokens / time_s : 0;
}

double steps_time_median_s(const struct steps *steps)
{
    double times[STEPS_WINDOW];
    for (size_t i = 0; i < steps->count; i++)
        times[i] = steps->window[i].time_s;
    return median(times, steps->count);
}
