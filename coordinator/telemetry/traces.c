/* traces.c - collects the records of a step until all ranks have reported it. */
#include "coordinator/telemetry/traces.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void step_finish(struct trace_step *step)
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
    step_finish(&traces->newest);
    step_finish(&traces->arriving);
}

size_t traces_bytes(const struct traces *traces)
{
    return traces->newest.bytes + traces->arriving.bytes;
}

static int check(const struct trace_record *record, struct error *err)
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

static bool is_older(const struct trace_record *record, const struct trace_step *step)
{
    return record->epoch < step->epoch ||
           (record->epoch == step->epoch && record->step < step->step);
}

static bool is_of(const struct trace_record *record, const struct trace_step *step)
{
    return record->epoch == step->epoch && record->step == step->step &&
           record->rank_count == step->rank_count;
}

/* Allocate the times of a rank, unless they would exceed the limit of the step. */
static void begin(struct trace_step *step, struct trace *trace, const struct trace_record *record)
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
    int rc = check(record, err);
    if (rc < 0)
        return rc;
    if (is_older(record, step) || is_older(record, &traces->newest) ||
        is_of(record, &traces->newest))
        return error_set(err, -ESTALE, "a trace of step %llu comes too late",
                         (unsigned long long)record->step);
    if (!is_of(record, step)) {
        step_finish(step);
        *step = (struct trace_step){.epoch = record->epoch,
                                    .step = record->step,
                                    .ranks = xcalloc(record->rank_count, sizeof *step->ranks),
                                    .rank_count = record->rank_count};
    }
    struct trace *trace = &step->ranks[record->rank];
    bool over = trace->begun && trace->arrived == trace->told;
    if (!trace->begun)
        begin(step, trace, record);
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
        step_finish(&traces->newest);
        traces->newest = *step;
        *step = (struct trace_step){0};
    }
    return 0;
}
