/* space.c - enumerates the points: number of stages, number of micro-batches, degree of the
 * embedding; with each go the strategies that its layers may have. */
#include "coordinator/planner/galvatron/space.h"

#include "common/base/memory.h"
#include "coordinator/planner/galvatron/point.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct space {
    struct galvatron_point point;
    struct plan *plan; /* the plan of this point: roles, stages and sizes */
    const struct graph *graph;
    double best_s;
    struct plan *best;
    bool legal;
};

/* At most two axes, tensor and batch in either order, fastest first. */
static void set_block(struct plan *plan, int block, const struct galvatron_strategy *strategy)
{
    struct plan_block *of = &plan->blocks[block];
    const struct mesh *mesh = &plan->stages[of->stage].mesh;
    int left = strategy->neighbours ? strategy->tensor : strategy->batch;
    for (int axis = 0; axis < mesh->axes; axis++) {
        bool first = left > 1;
        left /= first ? mesh->size[axis] : 1;
        of->roles[axis] = role_find(first == strategy->neighbours ? "tensor" : "batch");
    }
    of->zero = strategy->zero;
    of->recompute = strategy->recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

/* The layers in even runs, embedding and head at the ends. */
static void divide(struct plan *plan, int layers)
{
    int stages = plan->stage_count, next = 0;
    for (int i = 0; i < stages; i++) {
        int end = i == stages - 1 ? layers + 2 : 1 + (i + 1) * (layers / stages);
        plan->stages[i].block_first = next;
        plan->stages[i].block_count = end - next;
        for (; next < end; next++)
            plan->blocks[next].stage = i;
    }
}

static struct plan *make_plan(const struct galvatron_point *point, int stages, int micro_batches,
                              int64_t samples)
{
    struct plan *plan = plan_create(stages, point->problem->layers + 2);
    divide(plan, point->problem->layers);
    for (int i = 0; i < stages; i++)
        for (int left = point->devices; left > 1; left /= 2)
            plan->stages[i].mesh.size[plan->stages[i].mesh.axes++] = 2;
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find("1f1b");
    return plan;
}

/* The strategies of the point's layers that lowering accepts. */
static void find_strategies(struct space *space)
{
    static const int zeros[] = {0, 2, 3};
    struct galvatron_point *point = &space->point;
    point->strategy_count = 0;
    for (int t = 1; t <= point->devices; t *= 2)
        for (int i = 0; i < 3; i++)
            for (int more = 0; more < 4; more++) {
                struct galvatron_strategy one = {t, point->devices / t, more & 1, zeros[i],
                                                 more >> 1};
                bool plain = t == 1 || one.batch == 1; /* one order of axes is enough */
                if ((plain && one.neighbours != (t > 1)) || (one.batch == 1 && one.zero > 0) ||
                    one.batch > space->plan->micro_batch_samples)
                    continue;
                set_block(space->plan, 1, &one);
                if (plan_check_block(space->plan, space->graph, 1, NULL) == 0)
                    point->strategies[point->strategy_count++] = one;
            }
}

/* Keep the best plan of the point if it is better than those before. */
static void take_better(struct space *space)
{
    const struct galvatron_point *point = &space->point;
    int layers = point->problem->layers;
    int *strategies = xcalloc((size_t)layers, sizeof *strategies);
    double step_s = galvatron_point_solve(point, strategies);
    if (step_s < space->best_s) {
        for (int i = 0; i < layers; i++)
            set_block(space->plan, 1 + i, &point->strategies[strategies[i]]);
        plan_destroy(space->best);
        space->best_s = step_s;
        space->best = plan_copy(space->plan);
        space->best->predicted.formula_s = step_s;
    }
    free(strategies);
}

static void try_point(struct space *space)
{
    const struct galvatron_point *point = &space->point;
    int last = space->plan->block_count - 1;
    struct galvatron_strategy end = {point->tensor, point->devices / point->tensor,
                                     point->tensor > 1, 0, false};
    set_block(space->plan, 0, &end);
    set_block(space->plan, last, &end);
    if (end.batch > space->plan->micro_batch_samples ||
        plan_check_block(space->plan, space->graph, 0, NULL) < 0 ||
        plan_check_block(space->plan, space->graph, last, NULL) < 0 || point->strategy_count == 0)
        return;
    space->legal = true;
    take_better(space);
}

static void try_points(struct space *space, int devices, int64_t batch)
{
    struct galvatron_point *point = &space->point;
    for (int stages = 1; stages <= devices && stages <= point->problem->layers; stages *= 2) {
        for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++) {
            if (batch % m != 0)
                continue;
            point->devices = devices / stages;
            point->plan = space->plan = make_plan(point, stages, (int)m, batch / m);
            find_strategies(space);
            for (point->tensor = 1; point->tensor <= point->devices; point->tensor *= 2)
                try_point(space);
            plan_destroy(space->plan);
        }
    }
}

struct plan *galvatron_best(const struct galvatron_problem *problem, const struct graph *graph,
                            int devices, int64_t batch, struct error *err)
{
    struct space space = {.point.problem = problem, .graph = graph, .best_s = INFINITY};
    if (galvatron_level(devices) < 0)
        error_set(err, -EINVAL, "Galvatron divides powers of two, and there are %d devices",
                  devices);
    else
        try_points(&space, devices, batch);
    if (galvatron_level(devices) >= 0 && !space.best)
        error_set(err, space.legal ? -ENOSPC : -EINVAL,
                  space.legal
                      ? "no plan of Galvatron's space on %d devices fits by its formula, or "
                        "the profile lacks what it takes"
                      : "no plan of Galvatron's space on %d devices is legal",
                  devices);
    return space.best;
}
