/* lanes.c - draws the boxes of a simulated step. */
#include "coordinator/cli/drawings/lanes.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/program/lower.h"
#include "common/program/simulate.h"
#include "coordinator/cli/drawings/svg.h"
#include "coordinator/picture/boxes.h"
#include "coordinator/planner/costs/pricing.h"

#include <errno.h>
#include <stdlib.h>

#define RANKS_MAX 512

enum { WIDTH = 1200, LEFT = 80, RIGHT = 20, TOP = 40, BOTTOM = 40, LANE = 44, ROW = 16, MARKS = 8 };

struct lanes {
    const struct plan *plan;
    struct program *const *programs;
    double step_s;        /* 0 during the first pass */
    struct boxes *stages; /* [stage]: of its first rank */
    FILE *out;
};

static const char *const section_colours[SECTIONS] = {"#cc79a7", "#999999", "#0072b2", "#e69f00",
                                                      "#d55e00", "#999999", "#009e73"};

static double x_of(const struct lanes *lanes, double seconds)
{
    return LEFT + seconds / lanes->step_s * (WIDTH - LEFT - RIGHT);
}

static void draw_box(const struct lanes *lanes, int stage, const struct picture_box *box)
{
    char length[32], part[48] = "";
    int row = box->place.lane;
    if (box->place.micro_batch >= 0)
        snprintf(part, sizeof part, " of micro-batch %d", box->place.micro_batch);
    char *title = xasprintf("%s%s%s: %s", section_name(box->place.section), part,
                            row == BOX_COMMUNICATION ? ", moving data or waiting for it" : "",
                            units_print_seconds(length, sizeof length, box->end_s - box->begin_s));
    svg_rect(lanes->out, x_of(lanes, box->begin_s), TOP + stage * LANE + row * (ROW + 2),
             x_of(lanes, box->end_s) - x_of(lanes, box->begin_s), ROW,
             section_colours[box->place.section], title);
    free(title);
}

static int stage_of_first(const struct plan *plan, int rank)
{
    int inside, stage = plan_rank_stage(plan, rank, &inside);
    return inside == 0 ? stage : -1;
}

static void done(void *context, int rank, const struct program_cursor *cursor, double begin,
                 double end)
{
    struct lanes *lanes = context;
    int stage = stage_of_first(lanes->plan, rank);
    if (stage < 0)
        return;
    struct box_place place = box_place(lanes->programs[rank], cursor);
    boxes_add(&lanes->stages[stage], &place, begin, end, 1e-3 * lanes->step_s);
}

static void draw_axis(const struct lanes *lanes, int height)
{
    char text[32];
    double mark = svg_step(lanes->step_s, MARKS);
    for (int i = 0; i * mark <= lanes->step_s; i++) {
        double at = i * mark;
        svg_line(lanes->out, x_of(lanes, at), TOP - 6, x_of(lanes, at), height - BOTTOM, "#dddddd");
        svg_text(lanes->out, x_of(lanes, at), height - BOTTOM + 18, "middle",
                 units_print_seconds(text, sizeof text, at));
    }
    for (int stage = 0; stage < lanes->plan->stage_count; stage++) {
        snprintf(text, sizeof text, "stage %d", stage);
        svg_text(lanes->out, LEFT - 8, TOP + stage * LANE + ROW, "end", text);
    }
    double x = LEFT;
    for (int section = 0; section < SECTIONS; section++, x += 110) {
        svg_rect(lanes->out, x, 10, 12, 12, section_colours[section], NULL);
        svg_text(lanes->out, x + 18, 20, "start", section_name(section));
    }
}

/* Simulates twice: to find the length of the step, and to draw it. */
static int draw(const struct planner_request *request, struct program *const *programs,
                struct lanes *lanes, struct error *err)
{
    struct pricing pricing = pricing_plain(request);
    struct timing timing = {&pricing, pricing_seconds};
    struct simulation_trace trace = {lanes, done};
    struct simulation simulation;
    const struct program *const *all = (const struct program *const *)programs;
    int ranks = plan_ranks(lanes->plan), height = TOP + lanes->plan->stage_count * LANE + BOTTOM;
    int rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, NULL, &simulation, err);
    if (rc < 0)
        return rc;
    lanes->step_s = simulation.step_s;
    lanes->programs = programs;
    svg_begin(lanes->out, WIDTH, height, "a step, as it is simulated");
    draw_axis(lanes, height);
    rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, &trace, &simulation, err);
    for (int stage = 0; stage < lanes->plan->stage_count; stage++)
        for (size_t i = 0; i < lanes->stages[stage].count; i++)
            draw_box(lanes, stage, &lanes->stages[stage].items[i]);
    svg_end(lanes->out);
    return rc;
}

int lanes_draw(const struct planner_request *request, const struct plan *plan, FILE *out,
               struct error *err)
{
    int ranks = plan_ranks(plan), rc = 0;
    if (ranks > RANKS_MAX)
        return error_set(err, -EINVAL, "the plan has %d ranks; up to %d are drawn", ranks,
                         RANKS_MAX);
    struct lanes lanes = {.plan = plan, .out = out};
    struct program **programs = xcalloc((size_t)ranks, sizeof *programs);
    lanes.stages = xcalloc((size_t)plan->stage_count, sizeof *lanes.stages);
    for (int rank = 0; rank < ranks && rc == 0; rank++)
        rc = lower(request->graph, plan, rank, &programs[rank], err);
    if (rc == 0)
        rc = draw(request, programs, &lanes, err);
    for (int rank = 0; rank < ranks; rank++)
        program_destroy(programs[rank]);
    for (int stage = 0; stage < plan->stage_count; stage++)
        boxes_finish(&lanes.stages[stage]);
    free(programs);
    free(lanes.stages);
    return rc;
}
