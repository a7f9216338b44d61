/* picture.c - lowers and simulates a plan, and keeps the result as boxes and outlines, with which
 * measured times become boxes, too. */
#include "coordinator/picture/picture.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/simulation/simulate.h"

/* Allocate `count` empty rows. */
static void side_begin(struct picture_side *side, size_t count)
{
    *side = (struct picture_side){.rows = xcalloc(count, sizeof *side->rows), .count = count};
}

void picture_side_finish(struct picture_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        boxes_finish(&side->rows[i].boxes);
    free(side->rows);
    *side = (struct picture_side){0};
}

/* All boxes and the length of the step are known: leave out what is too much, and find the share of
 * the step in which each rank does not compute. */
static void side_settle(struct picture_side *side)
{
    size_t boxes = 0, known = 0;
    double sum = 0;
    for (size_t i = 0; i < side->count; i++) {
        struct picture_row *row = &side->rows[i];
        bool whole = row->instructions_left == 0 && side->step_s > 0;
        row->bubble = whole ? 1 - row->boxes.busy_s / side->step_s : NAN;
        sum += whole ? row->bubble : 0;
        known += whole;
        boxes_settle(&row->boxes, side->step_s / PICTURE_PARTS);
        row->told = boxes + row->boxes.count <= PICTURE_BOXES_MAX || boxes == 0;
        if (row->told)
            boxes += row->boxes.count;
        else
            boxes_finish(&row->boxes);
    }
    side->bubble = known > 0 ? sum / (double)known : NAN;
}

/* The first rank of every stage, then the second ones. */
static void picture_choose_ranks(struct picture *picture, const struct plan *plan)
{
    int most = 0;
    picture->ranks = xcalloc(PICTURE_RANKS_MAX, sizeof *picture->ranks);
    for (int stage = 0; stage < plan->stage_count; stage++) {
        int count = mesh_count(&plan->stages[stage].mesh);
        most = count > most ? count : most;
    }
    for (int inside = 0; inside < most; inside++)
        for (int stage = 0; stage < plan->stage_count && picture->count < PICTURE_RANKS_MAX;
             stage++) {
            if (inside >= mesh_count(&plan->stages[stage].mesh))
                continue;
            int rank = plan_stage_rank(plan, stage) + inside;
            const char *device = plan_device(plan, rank);
            picture->ranks[picture->count++] = (struct picture_rank){
                .rank = rank, .stage = stage, .device = device ? xstrdup(device) : NULL};
        }
}

/* Takes ownership of the outline, or finds an equal one. */
static size_t picture_keep_outline(struct picture *picture, struct outline *outline)
{
    for (size_t i = 0; i < picture->outline_count; i++)
        if (outline_same(&picture->outlines[i], outline)) {
            outline_finish(outline);
            return i;
        }
    picture->outlines = grow(picture->outlines, picture->outline_count, &picture->outline_capacity,
                             sizeof *picture->outlines);
    picture->outlines[picture->outline_count] = *outline;
    return picture->outline_count++;
}

static void picture_outline_rank(struct picture *picture, size_t index,
                                 const struct program *program)
{
    struct outline outline = {0};
    outline_make(program, TRACES_INSTRUCTIONS_MAX, &outline);
    picture->ranks[index].outline = picture_keep_outline(picture, &outline);
}

/* Where the simulation reports to: rows by rank, NULL for ranks that are not in the picture. */
struct drawing {
    struct program *const *programs;
    struct picture_row **rows;
    double gap_s;
};

static void picture_draw(void *context, int rank, const struct program_cursor *cursor,
                         double begin_s, double end_s)
{
    struct drawing *drawing = context;
    if (!drawing->rows[rank])
        return;
    struct box_place place = box_place(drawing->programs[rank], cursor);
    boxes_add(&drawing->rows[rank]->boxes, &place, begin_s, end_s, drawing->gap_s);
}

/* A rank that shares another one's program does the same. */
static void picture_copy_rows(struct picture *picture, struct program *const *programs,
                              struct picture_row *const *rows)
{
    for (size_t i = 0; i < picture->count; i++) {
        const struct program *program = programs[picture->ranks[i].rank];
        if (program->rank == picture->ranks[i].rank)
            continue;
        assert(rows[program->rank]); /* it precedes the ranks it stands for */
        const struct boxes *from = &rows[program->rank]->boxes;
        struct boxes *to = &picture->predicted.rows[i].boxes;
        *to = *from;
        to->items = xcalloc(from->count, sizeof *to->items);
        to->capacity = from->count;
        if (from->count > 0)
            memcpy(to->items, from->items, from->count * sizeof *to->items);
    }
}

/* Simulates twice: to find the length of the step, and to draw it. */
static int picture_predict(const struct planner_request *request, const struct plan *plan,
                           struct program *const *programs, struct picture *picture,
                           struct error *err)
{
    struct pricing pricing = pricing_plain(request);
    struct timing timing = pricing_timing(&pricing);
    struct drawing drawing = {.programs = programs};
    struct simulation_trace trace = {&drawing, picture_draw};
    struct simulation simulation;
    const struct program *const *all = (const struct program *const *)programs;
    int ranks = plan_ranks(plan);
    int rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, NULL, &simulation, err);
    if (rc < 0 || planner_stopped(request))
        return rc;
    side_begin(&picture->predicted, picture->count);
    picture->predicted.step_s = simulation.step_s;
    drawing.gap_s = simulation.step_s / PICTURE_PARTS;
    drawing.rows = xcalloc((size_t)ranks, sizeof(struct picture_row *));
    for (size_t i = 0; i < picture->count; i++)
        drawing.rows[picture->ranks[i].rank] = &picture->predicted.rows[i];
    rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, &trace, &simulation, err);
    picture_copy_rows(picture, programs, drawing.rows);
    side_settle(&picture->predicted);
    free(drawing.rows);
    return rc;
}

static int picture_make_predicted(const struct planner_request *request, const struct plan *plan,
                                  struct picture *picture, struct error *err)
{
    int ranks = plan_ranks(plan);
    struct program **programs = xcalloc((size_t)ranks, sizeof *programs);
    int rc = all_ranks_lower(request, plan, programs, err);
    for (size_t i = 0; i < picture->count && rc == 0; i++)
        picture_outline_rank(picture, i, programs[picture->ranks[i].rank]);
    if (rc == 0 && picture_predict(request, plan, programs, picture, &picture->why) < 0)
        picture_side_finish(&picture->predicted);
    all_ranks_destroy(programs, ranks);
    return rc;
}

/* Even without a prediction a measurement is worth seeing. */
static int picture_make_outlines(const struct planner_request *request, const struct plan *plan,
                                 struct picture *picture, struct error *err)
{
    struct lower_cache *ways = lower_cache_create();
    int rc = 0;
    for (size_t i = 0; i < picture->count && rc == 0 && !planner_stopped(request); i++) {
        struct program *program;
        rc = lower_with(ways, request->graph, plan, picture->ranks[i].rank, &program, err);
        if (rc < 0)
            break;
        picture_outline_rank(picture, i, program);
        program_destroy(program);
    }
    lower_cache_destroy(ways);
    return rc;
}

int picture_make(const struct planner_request *request, const struct plan *plan,
                 const struct error *why, struct picture **out, struct error *err)
{
    struct picture *picture = xcalloc(1, sizeof *picture);
    memcpy(picture->plan, plan->id, sizeof picture->plan);
    picture->rank_count = plan_ranks(plan);
    picture_choose_ranks(picture, plan);
    int rc;
    if (request->device_count > 0) {
        rc = picture_make_predicted(request, plan, picture, err);
    } else {
        picture->why = *why;
        rc = picture_make_outlines(request, plan, picture, err);
    }
    if (rc == 0 && planner_stopped(request))
        rc = error_set(err, -ECANCELED, "nobody wants the picture any more");
    if (rc < 0) {
        picture_destroy(picture);
        return rc;
    }
    *out = picture;
    return 0;
}

void picture_destroy(struct picture *picture)
{
    if (!picture)
        return;
    for (size_t i = 0; i < picture->count; i++)
        free(picture->ranks[i].device);
    for (size_t i = 0; i < picture->outline_count; i++)
        outline_finish(&picture->outlines[i]);
    picture_side_finish(&picture->predicted);
    free(picture->outlines);
    free(picture->ranks);
    free(picture);
}

/* The step, as far as it was reported. */
struct extent {
    uint64_t begin_ns; /* by the calendar */
    double step_s;
};

static struct extent step_extent(const struct trace_step *step)
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
    struct extent extent = step_extent(step);
    side_begin(out, picture->count);
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
    side_settle(out);
}
