/* neighbours.c - the kinds of neighbours: the blocks of a stage, the number of micro-batches, the
 * schedule, the roles of a stage or of an end of the model, sharding, and recomputation. */
#include "coordinator/planner/exact/neighbours.h"

#include "coordinator/planner/exact/block_order.h"

#define ZEROS 4
#define STYLES (ZEROS + RECOMPUTES)

static void take_strategy(struct plan *plan, int block, const struct plan_block *from, int stage)
{
    plan->blocks[block] = *from;
    plan->blocks[block].stage = stage;
}

/* Each kind counts its neighbours and changes a copy of the plan into one of them; false: it equals
 * the plan or does not exist. */
static int count_shifts(const struct plan *plan)
{
    return 2 * (plan->stage_count - 1);
}

/* A block moves to the next or the previous stage and takes the strategy of its new neighbour
 * there; if the stage has other blocks, not that of an end of the model. */
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

/* Set one zero or one recomputation for blocks [first, end). Recomputations that run the block
 * identically are no change. */
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

/* For a stage's blocks except the ends of the model. */
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
    return 4 * STYLES + (plan->stage_count == 1 ? -STYLES : 0);
}

/* For the first block, for the last, for all blocks, and, if there are several stages, for all
 * between the ends. */
static bool restyle_model(const struct hunt *hunt, struct plan *plan, int index)
{
    int last = plan->block_count - 1, first = index / STYLES == 1 ? last : 0;
    if (index / STYLES == 2)
        return restyle(hunt, plan, 0, last + 1, index % STYLES);
    if (index / STYLES == 3)
        return restyle(hunt, plan, 1, last, index % STYLES);
    return restyle(hunt, plan, first, first + 1, index % STYLES);
}

/* for the first block, for the last, for both */
#define ENDS 3

static int count_ends(const struct plan *plan)
{
    (void)plan;
    int count = 0;
    while (roles[count])
        count++;
    return ENDS * (1 + count);
}

/* Give an end the strategy of the adjacent block on its stage or, if role is not NULL, that role on
 * all axes. */
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

static int count_roles(const struct plan *plan)
{
    int count = 0;
    while (roles[count])
        count++;
    return plan->stage_count * AXES_MAX * count;
}

/* All blocks of a stage use one of its axes in another role. */
static bool replace_role(const struct hunt *hunt, struct plan *plan, int index)
{
    (void)hunt;
    int stage = index % plan->stage_count, axis = index / plan->stage_count % AXES_MAX;
    const struct role *role = roles[index / plan->stage_count / AXES_MAX];
    const struct plan_stage *of = &plan->stages[stage];
    bool changed = false;
    if (axis >= of->mesh.axes)
        return false;
    for (int b = of->block_first; b < of->block_first + of->block_count; b++) {
        changed = changed || plan->blocks[b].roles[axis] != role;
        plan->blocks[b].roles[axis] = role;
    }
    return changed;
}

#define PAIRS (AXES_MAX - 1)

static int count_merges(const struct plan *plan)
{
    return plan->stage_count * PAIRS;
}

/* Merge two axes of a stage on which each of its blocks has equal roles: axes of the space are
 * prime factors, and one collective has less latency than two. */
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

/* kinds with few neighbours first */
static const struct neighbours {
    int (*count)(const struct plan *plan);
    bool (*change)(const struct hunt *hunt, struct plan *plan, int index);
} neighbours[] = {
    {count_merges, merge},         {count_orders, reorder},
    {count_schedules, reschedule}, {count_divisions, divide},
    {count_shifts, shift},         {count_ends, divide_ends},
    {count_styles, restyle_model}, {count_stage_styles, restyle_stage},
    {count_roles, replace_role},
};
#define KINDS (sizeof neighbours / sizeof *neighbours)

struct plan *neighbours_find(const struct hunt *hunt, const struct plan *plan, int number,
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
