/* autoddl.c - coordinate descent over the strategies of blocks, as AutoDDL does over those of
 * operators (arXiv 2301.06813), with our costs.
 *
 * A descent starts from random strategies. Blocks of one type are tied at first: a move gives all
 * of them another strategy, or draws one each for two neighbouring types at random. When no move
 * helps, blocks are moved one at a time. Plans that do not fit are judged by the bytes they lack,
 * so that a descent finds its way into the memory. The best of several descents counts; the random
 * draws depend on the job's seed alone. Pipelines are outside this search. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/searches/searches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DESCENTS 4
#define JOINT_DRAWS 100 /* for each pair of neighbouring types, per round */
#define STREAM 11       /* of the random number generator */

struct descent {
    struct instance *instance;
    struct plan *plan;
    const struct site *site;
    uint64_t seed, drawn;
    struct merit {
        uint64_t lacking; /* bytes */
        double step_s;
    } merit;
};

static struct merit descent_measure(const struct descent *descent)
{
    struct stage_cost cost;
    const struct site *sites[] = {descent->site};
    if (evaluate_stage(descent->instance->costs, descent->plan, sites, 0, &cost, NULL) < 0)
        return (struct merit){UINT64_MAX, INFINITY};
    return (struct merit){cost.lacking, evaluate_formula(&cost, 1, descent->plan->micro_batches)};
}

static bool is_better(const struct merit *a, const struct merit *b)
{
    return a->lacking != b->lacking ? a->lacking < b->lacking : a->step_s < b->step_s;
}

static size_t descent_draw(struct descent *descent, size_t count)
{
    return (size_t)random_below(descent->seed, STREAM, descent->drawn++, count);
}

/* Blocks [first, end) that a move changes: all of a type while they are tied. */
struct range_of_blocks {
    int first, end;
};

static void descent_set(struct descent *descent, struct range_of_blocks range, size_t index)
{
    const struct strategy *strategy =
        &instance_choices(descent->instance, 0, range.first)->items[index].strategy;
    for (int b = range.first; b < range.end; b++) {
        struct plan_block *block = &descent->plan->blocks[b];
        memcpy(block->roles, strategy->roles, sizeof block->roles);
        block->zero = strategy->zero;
        block->recompute = strategy->recompute;
    }
}

/* Keep the current strategies of blocks [first, end) if they are an improvement; otherwise restore
 * `old`. */
static bool descent_keep_better(struct descent *descent, int first, int end,
                                const struct plan_block *old)
{
    struct merit merit = descent_measure(descent);
    if (is_better(&merit, &descent->merit)) {
        descent->merit = merit;
        return true;
    }
    memcpy(&descent->plan->blocks[first], old, (size_t)(end - first) * sizeof *old);
    return false;
}

/* Give these blocks their best choice, with all others unchanged. */
static bool descent_move(struct descent *descent, struct range_of_blocks range,
                         struct plan_block *old)
{
    size_t count = instance_choices(descent->instance, 0, range.first)->count;
    bool moved = false;
    for (size_t i = 0; i < count; i++) {
        memcpy(old, &descent->plan->blocks[range.first],
               (size_t)(range.end - range.first) * sizeof *old);
        descent_set(descent, range, i);
        moved = descent_keep_better(descent, range.first, range.end, old) || moved;
    }
    return moved;
}

/* Change two neighbouring types at once, for improvements that neither gives alone. */
static bool descent_move_both(struct descent *descent, struct range_of_blocks left,
                              struct range_of_blocks right, struct plan_block *old)
{
    const struct instance *instance = descent->instance;
    bool moved = false;
    for (int i = 0; i < JOINT_DRAWS; i++) {
        memcpy(old, &descent->plan->blocks[left.first],
               (size_t)(right.end - left.first) * sizeof *old);
        descent_set(descent, left,
                    descent_draw(descent, instance_choices(instance, 0, left.first)->count));
        descent_set(descent, right,
                    descent_draw(descent, instance_choices(instance, 0, right.first)->count));
        moved = descent_keep_better(descent, left.first, right.end, old) || moved;
    }
    return moved;
}

/* Find the runs of blocks of one type, which have equal choices; returns their number. */
static int find_types(const struct instance *instance, struct range_of_blocks *types)
{
    const int *place = instance->costs->model.place;
    int count = 0;
    for (int b = 0; b < instance->blocks; b++) {
        if (b == 0 || place[b] != place[b - 1])
            types[count++] = (struct range_of_blocks){b, b};
        types[count - 1].end = b + 1;
    }
    return count;
}

static void descent_run(struct descent *descent, const struct range_of_blocks *types, int count,
                        struct plan_block *old)
{
    for (int t = 0; t < count; t++)
        descent_set(
            descent, types[t],
            descent_draw(descent, instance_choices(descent->instance, 0, types[t].first)->count));
    descent->merit = descent_measure(descent);
    for (bool moved = true; moved && !planner_stopped(descent->instance->costs->request);) {
        moved = false;
        for (int t = 0; t < count; t++)
            moved = descent_move(descent, types[t], old) || moved;
        for (int t = 1; t < count; t++)
            moved = descent_move_both(descent, types[t - 1], types[t], old) || moved;
    }
    for (bool moved = true; moved && !planner_stopped(descent->instance->costs->request);) {
        moved = false;
        for (int b = 0; b < descent->instance->blocks; b++)
            moved = descent_move(descent, (struct range_of_blocks){b, b + 1}, old) || moved;
    }
}

static struct plan *autoddl_solve(struct instance *instance)
{
    size_t blocks = (size_t)instance->blocks;
    struct range_of_blocks *types = xcalloc(blocks, sizeof *types);
    struct plan_block *old = xcalloc(blocks, sizeof *old);
    struct strategy *any = xcalloc(blocks, sizeof *any);
    struct descent descent = {
        .instance = instance,
        .plan = sweep_plan(instance, &instance->blocks, any),
        .site = instance->sites[0],
        .seed = (uint64_t)instance->costs->request->job->train.seed,
    };
    struct plan *best = NULL;
    struct merit best_merit = {1, INFINITY};
    int count = find_types(instance, types);
    for (int i = 0; i < DESCENTS; i++) {
        descent_run(&descent, types, count, old);
        if (descent.merit.lacking == 0 && is_better(&descent.merit, &best_merit)) {
            best_merit = descent.merit;
            plan_destroy(best);
            best = plan_copy(descent.plan);
        }
    }
    plan_destroy(descent.plan);
    free(any);
    free(old);
    free(types);
    return best;
}

static int autoddl_search(const struct planner_request *request, struct planner_result *out,
                          struct error *err)
{
    static const struct sweep sweep = {.name = "autoddl", .stages_max = 1, .solve = autoddl_solve};
    return sweep_run(request, &sweep, out, err);
}

const struct search search_autoddl = {.name = "autoddl", .run = autoddl_search};
