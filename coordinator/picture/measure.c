/* measure.c - turns measured times of instructions into boxes. */
#include "coordinator/picture/internal.h"

/* The step, as far as it was reported. */
struct extent {
    uint64_t begin_ns; /* by the calendar */
    double step_s;
};

static struct extent extent_of(const struct trace_step *step)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (size_t i = 0; i < step->rank_count; i++) {
        const struct trace *trace = &step->ranks[i];
        uint64_t last_ns = 0;
        for (size_t j = 0; j < trace->count; j++)
            last_ns = trace->end_ns[j] > last_ns ? trace->end_ns[j] : last_ns;
        if (trace->count == 0)
            continue;
        begin_ns = trace->unix_ns < begin_ns ? trace->unix_ns : begin_ns;
        end_ns = trace->unix_ns + last_ns > end_ns ? trace->unix_ns + last_ns : end_ns;
    }
    return (struct extent){begin_ns, end_ns > begin_ns ? 1e-9 * (double)(end_ns - begin_ns) : 0};
}

void picture_measure(const struct picture *picture, const struct trace_step *step,
                     struct picture_side *out)
{
    struct extent extent = extent_of(step);
    picture_side_begin(out, picture->count);
    out->step_s = extent.step_s;
    for (size_t i = 0; i < picture->count; i++) {
        const struct picture_rank *rank = &picture->ranks[i];
        const struct trace *trace = &step->ranks[rank->rank];
        struct outline_times times = {
            .begin_ns = trace->begin_ns, .end_ns = trace->end_ns, .count = trace->count};
        if (trace->count > 0)
            times.base_s = 1e-9 * (double)(trace->unix_ns - extent.begin_ns);
        outline_measure(&picture->outlines[rank->outline], &times, extent.step_s / PICTURE_PARTS,
                        &out->rows[i].boxes);
        out->rows[i].instructions_left = (size_t)trace->total - trace->count;
    }
    picture_side_settle(out);
}
