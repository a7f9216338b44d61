/* outline.c - makes outlines from programs, and boxes from outlines and times. */
#include "coordinator/picture/outline.h"

#include "common/base/memory.h"

#include <stdlib.h>

void outline_finish(struct outline *outline)
{
    free(outline->runs);
    *outline = (struct outline){0};
}

void outline_make(const struct program *program, size_t instructions_max, struct outline *out)
{
    struct program_cursor cursor = {0};
    for (size_t i = 0; i < instructions_max && program_next(program, PROGRAM_TRAIN, &cursor); i++) {
        struct box_place place = box_place(program, &cursor);
        if (out->count > 0 && box_place_same(&out->runs[out->count - 1].place, &place)) {
            out->runs[out->count - 1].count++;
            continue;
        }
        out->runs = grow(out->runs, out->count, &out->capacity, sizeof *out->runs);
        out->runs[out->count++] = (struct outline_run){place, 1};
    }
}

bool outline_same(const struct outline *a, const struct outline *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = a->runs[i].count == b->runs[i].count &&
               box_place_same(&a->runs[i].place, &b->runs[i].place);
    return same;
}

void outline_measure(const struct outline *outline, const struct outline_times *times, double gap_s,
                     struct boxes *out)
{
    size_t at = 0;
    for (size_t i = 0; i < outline->count && at < times->count; i++) {
        const struct outline_run *run = &outline->runs[i];
        for (uint32_t j = 0; j < run->count && at < times->count; j++, at++)
            boxes_add(out, &run->place, times->base_s + 1e-9 * (double)times->begin_ns[at],
                      times->base_s + 1e-9 * (double)times->end_ns[at], gap_s);
    }
}
