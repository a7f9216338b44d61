/* boxes.c - merges instructions into boxes as they arrive: those of a program, or of an outline and
 * measured times. */
#include "coordinator/picture/boxes.h"

#include <stdlib.h>

#include "common/base/memory.h"

void boxes_finish(struct boxes *boxes)
{
    free(boxes->items);
    *boxes = (struct boxes){0};
}

const char *box_lane_name(enum box_lane lane)
{
    static const char *const names[BOX_LANES] = {"compute", "communication"};
    return names[lane];
}

static bool instruction_moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_SEND ||
           instruction->kind == INSTRUCTION_WAIT || instruction->kind == INSTRUCTION_RECEIVE;
}

struct box_place box_place(const struct program *program, const struct program_cursor *cursor)
{
    enum section section = instruction_section(program, cursor->instruction);
    bool of_micro_batch = section == SECTION_FORWARD || section == SECTION_BACKWARD;
    return (struct box_place){
        .section = (uint8_t)section,
        .queue = (uint8_t)cursor->instruction->queue,
        .lane = instruction_moves(cursor->instruction) ? BOX_COMMUNICATION : BOX_COMPUTE,
        .micro_batch = of_micro_batch ? cursor->micro_batch : -1,
    };
}

bool box_place_same(const struct box_place *a, const struct box_place *b)
{
    return a->section == b->section && a->queue == b->queue && a->lane == b->lane &&
           a->micro_batch == b->micro_batch;
}

void boxes_add(struct boxes *boxes, const struct box_place *place, double begin_s, double end_s,
               double gap_s)
{
    size_t *open = &boxes->open[place->queue][place->lane];
    struct picture_box *last = *open ? &boxes->items[*open - 1] : NULL;
    if (end_s <= begin_s)
        return;
    if (place->lane == BOX_COMPUTE && place->queue == QUEUE_COMPUTE)
        boxes->busy_s += end_s - begin_s;
    if (last && box_place_same(&last->place, place) && begin_s - last->end_s < gap_s) {
        last->end_s = end_s;
        return;
    }
    boxes->items = grow(boxes->items, boxes->count, &boxes->capacity, sizeof *boxes->items);
    boxes->items[boxes->count++] = (struct picture_box){*place, begin_s, end_s};
    *open = boxes->count;
}

static int box_order(const void *a, const void *b)
{
    const struct picture_box *one = a, *other = b;
    if (one->place.lane != other->place.lane)
        return one->place.lane < other->place.lane ? -1 : 1;
    if (one->begin_s != other->begin_s)
        return one->begin_s < other->begin_s ? -1 : 1;
    return (one->place.queue > other->place.queue) - (one->place.queue < other->place.queue);
}

void boxes_settle(struct boxes *boxes, double shortest_s)
{
    size_t kept = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        double length_s = boxes->items[i].end_s - boxes->items[i].begin_s;
        if (length_s >= shortest_s) {
            boxes->items[kept++] = boxes->items[i];
            continue;
        }
        boxes->left_out++;
        boxes->left_out_s += length_s;
    }
    boxes->count = kept;
    if (kept > 0)
        qsort(boxes->items, kept, sizeof *boxes->items, box_order);
}

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
