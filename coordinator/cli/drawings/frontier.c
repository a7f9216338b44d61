/* frontier.c - both axes begin at 0, so that proportions are visible. */
#include "coordinator/cli/drawings/frontier.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/cli/drawings/svg.h"

#include <stdlib.h>

enum { WIDTH = 860, HEIGHT = 520, LEFT = 90, RIGHT = 30, TOP = 40, BOTTOM = 60, MARKS = 6 };

struct frame {
    double step_s, bytes; /* at the right and upper ends */
};

static double x_of(const struct frame *frame, double step_s)
{
    return LEFT + step_s / frame->step_s * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct frame *frame, double bytes)
{
    return HEIGHT - BOTTOM - bytes / frame->bytes * (HEIGHT - TOP - BOTTOM);
}

static double plan_x(const struct frame *frame, const struct plan *plan)
{
    return x_of(frame, plan->predicted.step_time_s);
}

static double plan_y(const struct frame *frame, const struct plan *plan)
{
    return y_of(frame, (double)plan->predicted.memory_bytes_max);
}

static void draw_axes(const struct frame *frame, FILE *out)
{
    char text[32];
    double step_s = svg_step(frame->step_s, MARKS), bytes = svg_step(frame->bytes / 0x1p20, MARKS);
    for (int i = 0; i * step_s <= frame->step_s; i++) {
        double at = i * step_s;
        svg_line(out, x_of(frame, at), TOP, x_of(frame, at), HEIGHT - BOTTOM, "#dddddd");
        svg_text(out, x_of(frame, at), HEIGHT - BOTTOM + 18, "middle",
                 units_print_seconds(text, sizeof text, at));
    }
    for (double at = 0; at * 0x1p20 <= frame->bytes; at += bytes) {
        double y = y_of(frame, at * 0x1p20);
        svg_line(out, LEFT, y, WIDTH - RIGHT, y, "#dddddd");
        svg_text(out, LEFT - 8, y + 4, "end", units_print_bytes(text, sizeof text, at * 0x1p20));
    }
    svg_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "middle", "step");
    svg_text(out, LEFT, TOP - 14, "middle", "memory of a device");
}

static int faster_first(const void *a, const void *b)
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
    qsort(plans, count, sizeof *plans, faster_first);
    for (size_t i = 0; i < count; i++) {
        if (last && plans[i]->predicted.memory_bytes_max >= last->predicted.memory_bytes_max)
            continue;
        if (last) {
            double corner = plan_y(frame, last), x = plan_x(frame, plans[i]);
            svg_line(out, plan_x(frame, last), corner, x, corner, "#0072b2");
            svg_line(out, x, corner, x, plan_y(frame, plans[i]), "#0072b2");
        }
        last = plans[i];
    }
}

static void draw_plan(const struct frame *frame, const struct candidate *candidate, bool chosen,
                      FILE *out)
{
    const struct plan *plan = candidate->plan;
    char division[96], step[32], memory[32];
    char *title = xasprintf(
        "%s, %s: %s, %s, %d devices%s", plan->id, plan_print(division, sizeof division, plan),
        units_print_seconds(step, sizeof step, plan->predicted.step_time_s),
        units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max),
        plan_ranks(plan), candidate->fits ? "" : ", does not fit");
    if (chosen)
        svg_circle(out, plan_x(frame, plan), plan_y(frame, plan), 9, "#d55e00", NULL);
    svg_circle(out, plan_x(frame, plan), plan_y(frame, plan), 4,
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
    draw_axes(&frame, out);
    draw_frontier(&frame, fitting, count, out);
    for (size_t i = result->count; i-- > 0;)
        draw_plan(&frame, &result->candidates[i], result->candidates[i].plan == result->best, out);
    svg_end(out);
    free(fitting);
}
