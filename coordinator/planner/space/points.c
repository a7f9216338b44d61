/* points.c - enumerates devices, stages, micro-batches and schedules. */
#include "coordinator/planner/space/space.h"

#include "common/base/memory.h"

#include <string.h>

bool space_pinned(int64_t pin, int64_t value)
{
    return pin != 0 && pin != value;
}

int space_stage_devices(const struct space_point *point, int stage)
{
    int even = point->devices / point->stages, more = point->devices % point->stages;
    bool extra = point->extra == EXTRA_FIRST ? stage < more : stage >= point->stages - more;
    return even + (more > 0 && extra);
}

bool space_same_speed(const struct planner_request *request, int first, int count)
{
    for (int i = first + 1; i < first + count; i++)
        if (request->devices[i].profile != request->devices[first].profile)
            return false;
    return true;
}

/* Whether any stage has devices of different speeds. */
static bool is_mixed(const struct planner_request *request, const struct space_point *point)
{
    for (int i = 0, first = 0; i < point->stages; i++) {
        int count = space_stage_devices(point, i);
        if (!space_same_speed(request, first, count))
            return true;
        first += count;
    }
    return false;
}

struct point_list {
    struct space_point *items;
    size_t count, capacity;
    bool one_speed; /* all devices that points may use have the same speed */
};

static void add_point(struct point_list *list, const struct space_point *point)
{
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = *point;
}

/* Without a pipeline only one schedule is listed. */
static void add_schedules(const struct planner_request *request, struct point_list *list,
                          struct space_point point)
{
    const char *wanted = request->job->plan.schedule;
    for (int i = 0; schedules[i]; i++) {
        bool other = wanted ? strcmp(schedules[i]->name, wanted) != 0
                            : i > 0 && (point.stages == 1 || point.micro_batches == 1);
        point.schedule = schedules[i];
        if (other)
            continue;
        point.weighted = false;
        add_point(list, &point);
        point.weighted = true;
        if (!list->one_speed && is_mixed(request, &point))
            add_point(list, &point);
    }
}

static void add_divisions(const struct planner_request *request, struct point_list *list,
                          struct space_point point)
{
    bool even = point.devices % point.stages == 0;
    for (int extra = even ? EXTRA_NONE : EXTRA_FIRST; extra <= (even ? EXTRA_NONE : EXTRA_LAST);
         extra++) {
        point.extra = (enum space_extra)extra;
        add_schedules(request, list, point);
    }
}

static int layers_of(const struct planner_request *request)
{
    int layers = (int)request->graph->block_count - 2;
    return layers > 1 ? layers : 1;
}

static void add_devices(const struct planner_request *request, struct point_list *list, int devices,
                        bool even)
{
    const struct job_plan *plan = &request->job->plan;
    int64_t batch = request->job->train.global_batch;
    for (int stages = 1; stages <= devices && stages <= layers_of(request); stages++) {
        if (space_pinned(plan->pin.pp, stages) || (even && devices % stages != 0))
            continue;
        for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
            if (batch % m == 0 && !space_pinned(plan->pin.micro_batches, m))
                add_divisions(request, list,
                              (struct space_point){.devices = devices,
                                                   .stages = stages,
                                                   .micro_batches = (int)m,
                                                   .samples = batch / m});
    }
}

struct space_point *space_points(const struct planner_request *request, int least, int most,
                                 size_t *count)
{
    struct point_list list = {.one_speed = space_same_speed(request, 0, most)};
    for (int devices = least; devices <= most; devices++)
        add_devices(request, &list, devices, false);
    *count = list.count;
    return list.items;
}

struct space_point *space_points_even(const struct planner_request *request, int least, int most,
                                      int step, size_t *count)
{
    struct point_list list = {.one_speed = space_same_speed(request, 0, most)};
    for (int devices = most; devices >= least; devices -= step)
        add_devices(request, &list, devices, true);
    *count = list.count;
    return list.items;
}

double space_points_most(const struct planner_request *request, int least, int most)
{
    const struct job_plan *plan = &request->job->plan;
    int64_t batch = request->job->train.global_batch, divisors = 0;
    for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
        divisors += batch % m == 0;
    int stages = most < layers_of(request) ? most : layers_of(request), kinds = 0;
    while (schedules[kinds])
        kinds++;
    return (double)(most - least + 1) * (plan->pin.pp ? 1 : stages) * 2 * kinds *
           (double)(plan->pin.micro_batches ? 1 : divisors);
}
