/* polish.c - neighbours of a plan, simulated: the first that is faster is gone on with.
 *
 * The formula knows neither what a stage hides of a message behind computing nor what two transfers
 * on one link cost each other: of unequal stages and slow links it is off by a quarter, and what it
 * ranks best is then not the fastest. */
#include "coordinator/planner/exact/polish.h"

#include "common/base/memory.h"
#include "coordinator/planner/confirm.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/events.h"
#include "coordinator/planner/exact/block_order.h"

#include <math.h>
#include <stdlib.h>

/* A pipeline that takes so many times as long as the best by the formula is not simulated. */
#define PIPELINE_REACH 1.25
/* A plan that events judge takes no longer than the programs of so many runs of blocks. */
#define LARGE_RUNS 64
#define ZEROS 4
#define STYLES (ZEROS + RECOMPUTES)

static void take_strategy(struct plan *plan, int block, const struct plan_block *from, int stage)
{
    plan->blocks[block] = *from;
    plan->blocks[block].stage = stage;
}

/* Neighbours by number: each changes a copy of the plan. False: it is the same plan, or none. */
static int count_shifts(const struct plan *plan)
{
    return 2 * (plan->stage_count - 1);
}

/* A block goes over to the next stage or the one before, where it is divided as its neighbour is.
 * Of a stage with more blocks than an end of the model the end is not that neighbour. */
static bool shift(const struct hunt *hunt, struct plan *plan, int index)
{
    (void)hunt;
    struct plan_stage *before = &plan->stages[index / 2], *after = before + 1;
    bool back = index % 2;
    struct plan_stage *from = back ? after : before, *to = back ? before : after;
    if (from->block_count == 1)
        return false;
    int block = back ? after->block_first : after->block_first - 1;
    int like = back ? block - 1 : block + 1;
    bool end = like == 0 || like == plan->block_count - 1;
    if (end && to->block_count > 1)
        like += back ? -1 : 1;
    if (like < 0 || like >= plan->block_count)
        like = back ? block - 1 : block + 1;
    take_strategy(plan, block, &plan->blocks[like], (int)(to - plan->stages));
    from->block_count--;
    to->block_count++;
    after->block_first += back ? 1 : -1;
    return true;
}

static int count_divisions(const struct plan *plan)
{
    (void)plan;
    return 2;
}

/* The next larger or smaller number of micro-batches. */
static bool divide(const struct hunt *hunt, struct plan *plan, int index)
{
    int64_t batch = hunt->request->job->train.global_batch, m = plan->micro_batches;
    int64_t most = batch < PLAN_MICRO_BATCHES_MAX ? batch : PLAN_MICRO_BATCHES_MAX;
    do
        m += index ? 1 : -1;
    while (m >= 1 && m <= most && batch % m != 0);
    if (m < 1 || m > most || space_pinned(hunt->request->job->plan.pin.micro_batches, m))
        return false;
    plan->micro_batches = (int)m;
    plan->micro_batch_samples = batch / m;
    return true;
}

static int count_schedules(const struct plan *plan)
{
    int count = 0;
    while (plan->stage_count > 1 && schedules[count])
        count++;
    return count;
}

static bool reschedule(const struct hunt *hunt, struct plan *plan, int index)
{
    if (hunt->request->job->plan.schedule || plan->schedule == schedules[index])
        return false;
    plan->schedule = schedules[index];
    return true;
}

/* All blocks from `first` to before `end` have another zero, or another recomputation: one by which
 * a block runs otherwise. */
static bool restyle(const struct hunt *hunt, struct plan *plan, int first, int end, int style)
{
    bool changed = false;
    for (int b = first; b < end; b++) {
        struct plan_block *block = &plan->blocks[b];
        const uint8_t *like = &hunt->costs.like[(size_t)hunt->costs.model.place[b] * RECOMPUTES];
        int recompute = style - ZEROS;
        changed = changed || (style < ZEROS ? block->zero != style
                                            : like[block->recompute] != like[recompute]);
        if (style < ZEROS)
            block->zero = style;
        else
            block->recompute = (enum recompute)recompute;
    }
    return changed;
}

static int count_stage_styles(const struct plan *plan)
{
    return plan->stage_count * STYLES;
}

/* Of a stage's blocks that are no end of the model. */
static bool restyle_stage(const struct hunt *hunt, struct plan *plan, int index)
{
    const struct plan_stage *stage = &plan->stages[index / STYLES];
    int first = stage->block_first, end = first + stage->block_count;
    first += first == 0;
    end -= end == plan->block_count;
    return restyle(hunt, plan, first, end, index % STYLES);
}

static int count_styles(const struct plan *plan)
{
    return 3 * STYLES + (plan->stage_count == 1 ? -STYLES : 0);
}

/* Of either end; of all blocks between them, where these are on more than one stage. */
static bool restyle_model(const struct hunt *hunt, struct plan *plan, int index)
{
    int last = plan->block_count - 1, first = index / STYLES == 1 ? last : 0;
    if (index / STYLES == 2)
        return restyle(hunt, plan, 1, last, index % STYLES);
    return restyle(hunt, plan, first, first + 1, index % STYLES);
}

/* Of the first block, of the last, of both. */
#define ENDS 3

static int count_ends(const struct plan *plan)
{
    (void)plan;
    int count = 0;
    while (roles[count])
        count++;
    return ENDS * (1 + count);
}

/* As the block beside it on its stage, or with one role on all axes. */
static void divide_end(struct plan *plan, int block, const struct role *role)
{
    struct plan_block *end = &plan->blocks[block];
    const struct plan_block *beside = &plan->blocks[block ? block - 1 : 1];
    for (int axis = 0; role && axis < plan->stages[end->stage].mesh.axes; axis++)
        end->roles[axis] = role;
    if (!role && beside->stage == end->stage)
        *end = *beside;
}

static bool differs(const struct plan_block *a, const struct plan_block *b)
{
    bool same = a->zero == b->zero && a->recompute == b->recompute;
    for (int axis = 0; axis < AXES_MAX; axis++)
        same = same && a->roles[axis] == b->roles[axis];
    return !same;
}

static bool divide_ends(const struct hunt *hunt, struct plan *plan, int index)
{
    (void)hunt;
    int last = plan->block_count - 1, which = index % ENDS;
    const struct role *role = index < ENDS ? NULL : roles[index / ENDS - 1];
    struct plan_block first = plan->blocks[0], head = plan->blocks[last];
    if (which != 1)
        divide_end(plan, 0, role);
    if (which != 0)
        divide_end(plan, last, role);
    return differs(&first, &plan->blocks[0]) || differs(&head, &plan->blocks[last]);
}

#define PAIRS (AXES_MAX - 1)

static int count_merges(const struct plan *plan)
{
    return plan->stage_count * PAIRS;
}

/* Two axes of a stage become one, where all its blocks have one role on both: the axes of a space
 * are prime, and one collective has less latency than two. */
static bool merge(const struct hunt *hunt, struct plan *plan, int index)
{
    (void)hunt;
    const struct plan_stage *stage = &plan->stages[index / PAIRS];
    struct mesh *mesh = &plan->stages[index / PAIRS].mesh;
    int axis = index % PAIRS, end = stage->block_first + stage->block_count;
    if (axis + 1 >= mesh->axes)
        return false;
    for (int b = stage->block_first; b < end; b++)
        if (plan->blocks[b].roles[axis] != plan->blocks[b].roles[axis + 1])
            return false;
    mesh->size[axis] *= mesh->size[axis + 1];
    mesh->axes--;
    for (int i = axis + 1; i < mesh->axes; i++)
        mesh->size[i] = mesh->size[i + 1];
    for (int b = stage->block_first; b < end; b++) {
        const struct role **of = plan->blocks[b].roles;
        for (int i = axis + 1; i < mesh->axes; i++)
            of[i] = of[i + 1];
        of[mesh->axes] = NULL;
    }
    return true;
}

static int count_orders(const struct plan *plan)
{
    (void)plan;
    return BLOCK_ORDERS;
}

static bool reorder(const struct hunt *hunt, struct plan *plan, int index)
{
    struct plan *sorted = block_order_sort(plan, hunt->costs.model.place, (enum block_order)index);
    if (!sorted)
        return false;
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b] = sorted->blocks[b];
    plan_destroy(sorted);
    return true;
}

/* Those that are few first. */
static const struct neighbours {
    int (*count)(const struct plan *plan);
    bool (*change)(const struct hunt *hunt, struct plan *plan, int index);
} neighbours[] = {
    {count_merges, merge},         {count_orders, reorder},
    {count_schedules, reschedule}, {count_divisions, divide},
    {count_shifts, shift},         {count_ends, divide_ends},
    {count_styles, restyle_model}, {count_stage_styles, restyle_stage},
};
#define KINDS (sizeof neighbours / sizeof *neighbours)

/* The neighbour of this number, or NULL; *end: there are no more. */
static struct plan *find_neighbour(const struct hunt *hunt, const struct plan *plan, int number,
                                   bool *end)
{
    *end = false;
    for (size_t kind = 0; kind < KINDS; kind++) {
        int count = neighbours[kind].count(plan);
        if (number < count) {
            struct plan *other = plan_copy(plan);
            if (neighbours[kind].change(hunt, other, number))
                return other;
            plan_destroy(other);
            return NULL;
        }
        number -= count;
    }
    *end = true;
    return NULL;
}

struct polish {
    struct hunt *hunt;
    const struct plan *best; /* lent by the result */
    struct planner_result *out;
    int64_t runs; /* of blocks that may still be simulated */
};

/* Is it one of the space, and may it be the faster one? */
static bool is_worth_it(struct polish *polish, struct plan *plan)
{
    struct costs *costs = &polish->hunt->costs;
    const struct site **sites = xcalloc((size_t)plan->stage_count, sizeof *sites);
    double bound_s, best_s = polish->best->predicted.step_time_s;
    double *formula_s = &plan->predicted.formula_s;
    double reach = plan->stage_count > 1 ? PIPELINE_REACH : 1 + polish->hunt->limits.slack;
    bool fits, allowed = true;
    evaluate_sites(costs, plan, sites);
    for (int b = 0; b < plan->block_count && allowed; b++) {
        struct strategy strategy = strategy_of(plan, b);
        allowed = space_allows(costs, sites[plan->blocks[b].stage], b, &strategy,
                               plan->micro_batch_samples);
    }
    free(sites);
    return allowed && evaluate_plan(costs, plan, formula_s, &bound_s, &fits, NULL) == 0 && fits &&
           bound_s < best_s && *formula_s < reach * best_s;
}

/* Takes the plan; *faster: it is the best now. */
static int try_plan(struct polish *polish, struct plan *plan, bool *faster, struct error *err)
{
    struct planner_result *out = polish->out;
    int ranks = plan_ranks(plan);
    int64_t runs =
        events_judge(ranks, plan->block_count, plan->stage_count, plan->micro_batches)
            ? LARGE_RUNS
            : events_block_runs(ranks, plan->block_count, plan->stage_count, plan->micro_batches);
    *faster = false;
    if (runs > polish->runs || !is_worth_it(polish, plan)) {
        plan_destroy(plan);
        return 0;
    }
    polish->runs -= runs;
    int rc = confirm_plan(polish->hunt, plan, out, err);
    if (rc < 0)
        return rc;
    out->looked_at++;
    const struct candidate *last = &out->candidates[out->count - 1];
    *faster = last->fits && last->plan->predicted.step_time_s < polish->best->predicted.step_time_s;
    if (*faster)
        polish->best = last->plan;
    else
        plan_destroy(out->candidates[--out->count].plan);
    return 0;
}

int polish_run(struct hunt *hunt, const struct plan *from, struct planner_result *out,
               struct error *err)
{
    struct polish polish = {hunt, from, out, hunt->limits.polish};
    bool better = true;
    int rc = 0;
    while (better) {
        better = false;
        for (int number = 0;; number++) {
            bool end, faster = false;
            struct plan *plan = find_neighbour(hunt, polish.best, number, &end);
            if (end || planner_stopped(hunt->request)) {
                plan_destroy(plan);
                break;
            }
            if (plan)
                rc = try_plan(&polish, plan, &faster, err);
            if (rc < 0)
                return rc;
            better = better || faster;
            number -= faster; /* once more */
        }
    }
    return 0;
}
