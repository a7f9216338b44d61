/* drawings.c - writes shapes as SVG, with text that is readable on light and on dark ground, and
 * draws plans and steps with them. */
#include "coordinator/cli/commands/plan/drawings.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/picture/boxes.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/simulation/simulate.h"

static void svg_put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

void svg_begin(FILE *out, int width, int height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n<title>",
            width, height, width, height);
    svg_put_text(out, title);
    fprintf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

static void svg_put_title(FILE *out, const char *element, const char *title)
{
    if (!title) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    svg_put_text(out, title);
    fprintf(out, "</title></%s>\n", element);
}

void svg_rect(FILE *out, double x, double y, double width, double height, const char *colour,
              const char *title)
{
    fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"", x, y,
            width, height, colour);
    svg_put_title(out, "rect", title);
}

void svg_circle(FILE *out, double x, double y, double radius, const char *colour, const char *title)
{
    fprintf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.1f\" fill=\"%s\"", x, y, radius, colour);
    svg_put_title(out, "circle", title);
}

void svg_line(FILE *out, double x, double y, double x_to, double y_to, const char *colour)
{
    fprintf(out, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n", x, y,
            x_to, y_to, colour);
}

void svg_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y, anchor);
    svg_put_text(out, text);
    fputs("</text>\n", out);
}

double svg_step(double length, int parts)
{
    double unit = pow(10, floor(log10(length / parts)));
    double times = length / parts / unit;
    return unit * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

#define RANKS_MAX 512

enum {
    LANES_WIDTH = 1200,
    LANES_LEFT = 80,
    LANES_RIGHT = 20,
    LANES_TOP = 40,
    LANES_BOTTOM = 40,
    LANE = 44,
    ROW = 16,
    LANES_MARKS = 8
};

struct lanes {
    const struct plan *plan;
    struct program **programs; /* [rank]; those of ranks that do the same are one */
    double step_s;             /* 0 during the first pass */
    struct boxes *ranks;       /* [rank]: of those that are wanted */
    bool *wanted;
    FILE *out;
};

static const char *const section_colours[SECTIONS] = {"#cc79a7", "#999999", "#0072b2", "#e69f00",
                                                      "#d55e00", "#999999", "#009e73"};

static double lanes_x_of(const struct lanes *lanes, double seconds)
{
    return LANES_LEFT + seconds / lanes->step_s * (LANES_WIDTH - LANES_LEFT - LANES_RIGHT);
}

static void lanes_draw_box(const struct lanes *lanes, int stage, const struct picture_box *box)
{
    char length[32], part[48] = "";
    int row = box->place.lane;
    if (box->place.micro_batch >= 0)
        snprintf(part, sizeof part, " of micro-batch %d", box->place.micro_batch);
    char *title = xasprintf("%s%s%s: %s", section_name(box->place.section), part,
                            row == BOX_COMMUNICATION ? ", moving data or waiting for it" : "",
                            units_print_seconds(length, sizeof length, box->end_s - box->begin_s));
    svg_rect(lanes->out, lanes_x_of(lanes, box->begin_s),
             LANES_TOP + stage * LANE + row * (ROW + 2),
             lanes_x_of(lanes, box->end_s) - lanes_x_of(lanes, box->begin_s), ROW,
             section_colours[box->place.section], title);
    free(title);
}

/* The rank whose boxes are the stage's lane: its first, or the one that does the same. */
static int lanes_rank_of(const struct lanes *lanes, int stage)
{
    return lanes->programs[plan_stage_rank(lanes->plan, stage)]->rank;
}

static void lanes_done(void *context, int rank, const struct program_cursor *cursor, double begin,
                       double end)
{
    struct lanes *lanes = context;
    if (!lanes->wanted[rank])
        return;
    struct box_place place = box_place(lanes->programs[rank], cursor);
    boxes_add(&lanes->ranks[rank], &place, begin, end, 1e-3 * lanes->step_s);
}

static void lanes_draw_axis(const struct lanes *lanes, int height)
{
    char text[32];
    double mark = svg_step(lanes->step_s, LANES_MARKS);
    for (int i = 0; i * mark <= lanes->step_s; i++) {
        double at = i * mark;
        svg_line(lanes->out, lanes_x_of(lanes, at), LANES_TOP - 6, lanes_x_of(lanes, at),
                 height - LANES_BOTTOM, "#dddddd");
        svg_text(lanes->out, lanes_x_of(lanes, at), height - LANES_BOTTOM + 18, "middle",
                 units_print_seconds(text, sizeof text, at));
    }
    for (int stage = 0; stage < lanes->plan->stage_count; stage++) {
        snprintf(text, sizeof text, "stage %d", stage);
        svg_text(lanes->out, LANES_LEFT - 8, LANES_TOP + stage * LANE + ROW, "end", text);
    }
    double x = LANES_LEFT;
    for (int section = 0; section < SECTIONS; section++, x += 110) {
        svg_rect(lanes->out, x, 10, 12, 12, section_colours[section], NULL);
        svg_text(lanes->out, x + 18, 20, "start", section_name(section));
    }
}

/* Simulates twice, as the plan was judged: to find the length of the step, and to draw it. */
static int lanes_draw_all(const struct planner_request *request, struct lanes *lanes,
                          struct error *err)
{
    struct pricing pricing = pricing_plain(request);
    struct timing timing = pricing_timing(&pricing);
    struct simulation_trace trace = {lanes, lanes_done};
    struct simulation simulation;
    const struct program *const *all = (const struct program *const *)lanes->programs;
    int ranks = plan_ranks(lanes->plan), stages = lanes->plan->stage_count;
    int height = LANES_TOP + stages * LANE + LANES_BOTTOM;
    int rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, NULL, &simulation, err);
    if (rc < 0)
        return rc;
    lanes->step_s = simulation.step_s;
    for (int stage = 0; stage < stages; stage++)
        lanes->wanted[lanes_rank_of(lanes, stage)] = true;
    svg_begin(lanes->out, LANES_WIDTH, height, "a step, as it is simulated");
    lanes_draw_axis(lanes, height);
    rc = simulate(all, ranks, PROGRAM_TRAIN, &timing, &trace, &simulation, err);
    for (int stage = 0; stage < stages; stage++) {
        const struct boxes *boxes = &lanes->ranks[lanes_rank_of(lanes, stage)];
        for (size_t i = 0; i < boxes->count; i++)
            lanes_draw_box(lanes, stage, &boxes->items[i]);
    }
    svg_end(lanes->out);
    return rc;
}

int lanes_draw(const struct planner_request *request, const struct plan *plan, FILE *out,
               struct error *err)
{
    int ranks = plan_ranks(plan);
    if (ranks > RANKS_MAX)
        return error_set(err, -EINVAL, "the plan has %d ranks; up to %d are drawn", ranks,
                         RANKS_MAX);
    struct lanes lanes = {.plan = plan, .out = out};
    lanes.programs = xcalloc((size_t)ranks, sizeof *lanes.programs);
    lanes.ranks = xcalloc((size_t)ranks, sizeof *lanes.ranks);
    lanes.wanted = xcalloc((size_t)ranks, sizeof *lanes.wanted);
    int rc = all_ranks_lower(request, plan, lanes.programs, err);
    if (rc == 0)
        rc = lanes_draw_all(request, &lanes, err);
    all_ranks_destroy(lanes.programs, ranks);
    for (int rank = 0; rank < ranks; rank++)
        boxes_finish(&lanes.ranks[rank]);
    free(lanes.ranks);
    free(lanes.wanted);
    return rc;
}

/* Both axes begin at 0, so that proportions are visible. */
enum { WIDTH = 860, HEIGHT = 520, LEFT = 90, RIGHT = 30, TOP = 40, BOTTOM = 60, MARKS = 6 };

struct frame {
    double step_s, bytes; /* at the right and upper ends */
};

static double frontier_x_of(const struct frame *frame, double step_s)
{
    return LEFT + step_s / frame->step_s * (WIDTH - LEFT - RIGHT);
}

static double frontier_y_of(const struct frame *frame, double bytes)
{
    return HEIGHT - BOTTOM - bytes / frame->bytes * (HEIGHT - TOP - BOTTOM);
}

static double frontier_plan_x(const struct frame *frame, const struct plan *plan)
{
    return frontier_x_of(frame, plan->predicted.step_time_s);
}

static double frontier_plan_y(const struct frame *frame, const struct plan *plan)
{
    return frontier_y_of(frame, (double)plan->predicted.memory_bytes_max);
}

static void frontier_draw_axes(const struct frame *frame, FILE *out)
{
    char text[32];
    double step_s = svg_step(frame->step_s, MARKS), bytes = svg_step(frame->bytes / 0x1p20, MARKS);
    for (int i = 0; i * step_s <= frame->step_s; i++) {
        double at = i * step_s;
        svg_line(out, frontier_x_of(frame, at), TOP, frontier_x_of(frame, at), HEIGHT - BOTTOM,
                 "#dddddd");
        svg_text(out, frontier_x_of(frame, at), HEIGHT - BOTTOM + 18, "middle",
                 units_print_seconds(text, sizeof text, at));
    }
    for (double at = 0; at * 0x1p20 <= frame->bytes; at += bytes) {
        double y = frontier_y_of(frame, at * 0x1p20);
        svg_line(out, LEFT, y, WIDTH - RIGHT, y, "#dddddd");
        svg_text(out, LEFT - 8, y + 4, "end", units_print_bytes(text, sizeof text, at * 0x1p20));
    }
    svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "middle", "step");
    svg_text(out, LEFT, TOP - 14, "middle", "memory of a device");
}

static int frontier_faster_first(const void *a, const void *b)
{
    const struct plan *x = *(const struct plan *const *)a, *y = *(const struct plan *const *)b;
    if (x->predicted.step_time_s != y->predicted.step_time_s)
        return x->predicted.step_time_s < y->predicted.step_time_s ? -1 : 1;
    return x->predicted.memory_bytes_max < y->predicted.memory_bytes_max ? -1 : 1;
}

/* From the fastest plan on, connect each that needs less memory than all before it. */
static void draw_frontier(const struct frame *frame, const struct plan **plans, size_t count,
                          FILE *out)
{
    const struct plan *last = NULL;
    qsort(plans, count, sizeof *plans, frontier_faster_first);
    for (size_t i = 0; i < count; i++) {
        if (last && plans[i]->predicted.memory_bytes_max >= last->predicted.memory_bytes_max)
            continue;
        if (last) {
            double corner = frontier_plan_y(frame, last), x = frontier_plan_x(frame, plans[i]);
            svg_line(out, frontier_plan_x(frame, last), corner, x, corner, "#0072b2");
            svg_line(out, x, corner, x, frontier_plan_y(frame, plans[i]), "#0072b2");
        }
        last = plans[i];
    }
}

static void frontier_draw_plan(const struct frame *frame, const struct candidate *candidate,
                               bool chosen, FILE *out)
{
    const struct plan *plan = candidate->plan;
    char division[96], step[32], memory[32];
    char *title = xasprintf(
        "%s, %s: %s, %s, %d devices%s", plan->id, plan_print(division, sizeof division, plan),
        units_print_seconds(step, sizeof step, plan->predicted.step_time_s),
        units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max),
        plan_ranks(plan), candidate->fits ? "" : ", does not fit");
    if (chosen)
        svg_circle(out, frontier_plan_x(frame, plan), frontier_plan_y(frame, plan), 9, "#d55e00",
                   NULL);
    svg_circle(out, frontier_plan_x(frame, plan), frontier_plan_y(frame, plan), 4,
               candidate->fits ? "#0072b2" : "#999999", title);
    free(title);
}

void frontier_draw(const struct planner_result *result, FILE *out)
{
    struct frame frame = {0, 0};
    const struct plan **fitting = xcalloc(result->count, sizeof(struct plan *));
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct plan *plan = result->candidates[i].plan;
        double step_s = plan->predicted.step_time_s * 1.05;
        double bytes = (double)plan->predicted.memory_bytes_max * 1.05;
        frame.step_s = step_s > frame.step_s ? step_s : frame.step_s;
        frame.bytes = bytes > frame.bytes ? bytes : frame.bytes;
        if (result->candidates[i].fits)
            fitting[count++] = plan;
    }
    svg_begin(out, WIDTH, HEIGHT, "plans: time of a step against memory of a device");
    frontier_draw_axes(&frame, out);
    draw_frontier(&frame, fitting, count, out);
    for (size_t i = result->count; i-- > 0;)
        frontier_draw_plan(&frame, &result->candidates[i],
                           result->candidates[i].plan == result->best, out);
    svg_end(out);
    free(fitting);
}
