/* measured.c - kinds of instructions are a sorted array, of a few hundred at most; the records of a
 * traced step are collected until all ranks have reported it. */
#include "coordinator/telemetry/measured.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

static int median_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, median_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void instructions_clear(struct instructions *instructions)
{
    instructions->count = 0;
    instructions->unsaved = true;
}

void instructions_finish(struct instructions *instructions)
{
    free(instructions->kinds);
    *instructions = (struct instructions){0};
}

static bool instruction_name_good(const char *name)
{
    size_t length = 0;
    for (; name[length]; length++)
        if (name[length] < ' ' || name[length] > '~')
            return false;
    return length > 0 && length < INSTRUCTIONS_NAME_SIZE;
}

static int instruction_check(const struct instruction_record *record, struct error *err)
{
    if (!instruction_name_good(record->block) || !instruction_name_good(record->class))
        return error_set(err, -EINVAL,
                         "a block type and an instruction's class are 1 to %d printable characters",
                         INSTRUCTIONS_NAME_SIZE - 1);
    if (record->count == 0 || !isfinite(record->predicted_s) || record->predicted_s < 0 ||
        !isfinite(record->measured_s) || record->measured_s < 0)
        return error_set(err, -EINVAL,
                         "'%s' of '%s': %llu instructions of %g s, predicted %g s, cannot be",
                         record->class, record->block, (unsigned long long)record->count,
                         record->measured_s, record->predicted_s);
    return 0;
}

/* The index of the kind, or where it would be inserted. */
static size_t instructions_place(const struct instructions *instructions, const char *block,
                                 const char *class, bool *found)
{
    size_t low = 0, high = instructions->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        const struct instruction_sums *kind = &instructions->kinds[middle];
        int order = strcmp(kind->block, block);
        if (order == 0)
            order = strcmp(kind->class, class);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *found ? high : low;
}

static struct instruction_sums *instructions_insert(struct instructions *instructions, size_t index)
{
    instructions->kinds = grow(instructions->kinds, instructions->count, &instructions->capacity,
                               sizeof *instructions->kinds);
    struct instruction_sums *kind = &instructions->kinds[index];
    memmove(kind + 1, kind, (instructions->count - index) * sizeof *kind);
    instructions->count++;
    *kind = (struct instruction_sums){0};
    return kind;
}

int instructions_add(struct instructions *instructions, const struct instruction_record *record,
                     struct error *err)
{
    int rc = instruction_check(record, err);
    if (rc < 0)
        return rc;
    bool found;
    size_t index = instructions_place(instructions, record->block, record->class, &found);
    if (!found && instructions->count == INSTRUCTIONS_MAX)
        return error_set(err, -ENOSPC,
                         "more than %d kinds of instructions: '%s' of '%s' is left out",
                         INSTRUCTIONS_MAX, record->class, record->block);
    struct instruction_sums *kind =
        found ? &instructions->kinds[index] : instructions_insert(instructions, index);
    if (!found) {
        snprintf(kind->block, sizeof kind->block, "%s", record->block);
        snprintf(kind->class, sizeof kind->class, "%s", record->class);
    }
    kind->count += record->count;
    kind->predicted_s += record->predicted_s;
    kind->measured_s += record->measured_s;
    kind->times_s[kind->record_count++ % INSTRUCTIONS_WINDOW] =
        record->measured_s / (double)record->count;
    if (record->predicted_s > 0)
        kind->ratios[kind->ratio_count++ % INSTRUCTIONS_WINDOW] =
            record->measured_s / record->predicted_s;
    instructions->unsaved = true;
    return 0;
}

void instructions_restore(struct instructions *instructions, const struct instruction_sums *sums,
                          double time_median_s, double ratio_median)
{
    struct instruction_sums *kind = instructions_insert(instructions, instructions->count);
    *kind = *sums;
    kind->times_s[0] = time_median_s;
    kind->ratios[0] = ratio_median;
    kind->record_count = 1;
    kind->ratio_count = ratio_median > 0 ? 1 : 0;
}

static double window_median(const double *ring, size_t ever)
{
    double values[INSTRUCTIONS_WINDOW];
    size_t count = ever < INSTRUCTIONS_WINDOW ? ever : INSTRUCTIONS_WINDOW;
    memcpy(values, ring, count * sizeof *values);
    return median(values, count);
}

double instruction_time_median_s(const struct instruction_sums *kind)
{
    return window_median(kind->times_s, kind->record_count);
}

double instruction_ratio_median(const struct instruction_sums *kind)
{
    return window_median(kind->ratios, kind->ratio_count);
}

static void trace_step_finish(struct trace_step *step)
{
    for (size_t i = 0; i < step->rank_count; i++) {
        free(step->ranks[i].begin_ns);
        free(step->ranks[i].end_ns);
    }
    free(step->ranks);
    *step = (struct trace_step){0};
}

void traces_finish(struct traces *traces)
{
    trace_step_finish(&traces->newest);
    trace_step_finish(&traces->arriving);
}

size_t traces_bytes(const struct traces *traces)
{
    return traces->newest.bytes + traces->arriving.bytes;
}

static int trace_check(const struct trace_record *record, struct error *err)
{
    if (record->step == 0 || record->rank >= record->rank_count)
        return error_set(err, -EINVAL, "a trace of step %llu of rank %zu of %zu cannot be",
                         (unsigned long long)record->step, record->rank, record->rank_count);
    if (record->count > TRACES_INSTRUCTIONS_MAX || record->count > record->total ||
        record->first > record->count || record->here > record->count - record->first)
        return error_set(err, -EINVAL,
                         "a trace of %llu instructions at most is told in parts, not %zu from %llu "
                         "on of %llu",
                         (unsigned long long)TRACES_INSTRUCTIONS_MAX, record->here,
                         (unsigned long long)record->first, (unsigned long long)record->count);
    for (size_t i = 0; i < record->here; i++)
        if (record->end_ns[i] < record->begin_ns[i])
            return error_set(err, -EINVAL, "instruction %llu of a trace ends before it begins",
                             (unsigned long long)record->first + i);
    return 0;
}

static bool trace_is_older(const struct trace_record *record, const struct trace_step *step)
{
    return record->epoch < step->epoch ||
           (record->epoch == step->epoch && record->step < step->step);
}

static bool trace_is_of(const struct trace_record *record, const struct trace_step *step)
{
    return record->epoch == step->epoch && record->step == step->step &&
           record->rank_count == step->rank_count;
}

/* Allocate the times of a rank, unless they would exceed the limit of the step. */
static void trace_begin(struct trace_step *step, struct trace *trace,
                        const struct trace_record *record)
{
    size_t bytes = (size_t)record->count * 2 * sizeof(uint64_t);
    *trace = (struct trace){
        .unix_ns = record->unix_ns, .total = record->total, .told = record->count, .begun = true};
    if (bytes > TRACES_BYTES_MAX - step->bytes)
        return;
    step->bytes += bytes;
    trace->count = (size_t)record->count;
    trace->begin_ns = xcalloc(trace->count, sizeof *trace->begin_ns);
    trace->end_ns = xcalloc(trace->count, sizeof *trace->end_ns);
}

int traces_add(struct traces *traces, const struct trace_record *record, struct error *err)
{
    struct trace_step *step = &traces->arriving;
    int rc = trace_check(record, err);
    if (rc < 0)
        return rc;
    if (trace_is_older(record, step) || trace_is_older(record, &traces->newest) ||
        trace_is_of(record, &traces->newest))
        return error_set(err, -ESTALE, "a trace of step %llu comes too late",
                         (unsigned long long)record->step);
    if (!trace_is_of(record, step)) {
        trace_step_finish(step);
        *step = (struct trace_step){.epoch = record->epoch,
                                    .step = record->step,
                                    .ranks = xcalloc(record->rank_count, sizeof *step->ranks),
                                    .rank_count = record->rank_count};
    }
    struct trace *trace = &step->ranks[record->rank];
    bool over = trace->begun && trace->arrived == trace->told;
    if (!trace->begun)
        trace_begin(step, trace, record);
    if (over || record->first != trace->arrived || record->count != trace->told)
        return error_set(err, -EINVAL,
                         "a trace goes on at instruction %llu of %llu, not at %llu of %llu",
                         (unsigned long long)record->first, (unsigned long long)record->count,
                         (unsigned long long)trace->arrived, (unsigned long long)trace->told);
    if (trace->count > 0) {
        memcpy(trace->begin_ns + record->first, record->begin_ns, record->here * sizeof(uint64_t));
        memcpy(trace->end_ns + record->first, record->end_ns, record->here * sizeof(uint64_t));
    }
    trace->arrived += record->here;
    if (trace->arrived == trace->told && ++step->done == step->rank_count) {
        trace_step_finish(&traces->newest);
        traces->newest = *step;
        *step = (struct trace_step){0};
    }
    return 0;
}
