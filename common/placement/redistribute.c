/* redistribute.c - Dijkstra's algorithm over the placements of one tensor, within a cost limit.
 *
 * A state is dropped when its cost so far plus the lower bound on the rest is not below
 * the limit. Low limits leave little to search, so they are tried first: the lower bound of the
 * whole path, which most paths meet, then one step more, which suffices for most others. Only then
 * is the limit the cost of a greedy path. */
#include "common/placement/redistribute.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a lower bound on the cost of a path, from how two placements cut the tensor, without looking
 * at single ranks ---- */

/* What each axis does in a placement: it splits dim i (i), holds partial sums (DIMS_MAX), or
 * replicates (-1). */
struct duties {
    int8_t of[AXES_MAX];
};

/* Products of axis sizes: the pieces along each dim; the replicas (idle); and the ranks whose
 * partial sums have yet to be reduced, because the goal is not partial over their axes
 * (pending). */
struct cuts {
    int64_t parts[DIMS_MAX], idle, pending;
};

/* Where a placement stands relative to a goal. */
struct standing {
    struct duties duties;
    struct cuts cuts;
};

struct goal {
    const struct mesh *mesh;
    const struct shape *shape;
    const struct placement *at;
    struct duties duties;
    struct cuts cuts;
    int64_t elements; /* of all ranks' pieces in the goal together */
    int64_t whole;    /* of all ranks together if each held the whole tensor */
    int64_t ranks;
    int64_t step_price; /* the fixed price of one step, in words over all ranks */
};

static struct duties duties_of(const struct placement *placement, int dims)
{
    struct duties duties;
    memset(&duties, -1, sizeof duties);
    for (unsigned left = placement->partial; left; left &= left - 1)
        duties.of[__builtin_ctz(left)] = DIMS_MAX;
    for (int dim = 0; dim < dims; dim++)
        for (int i = 0; i < placement->count[dim]; i++)
            duties.of[placement->axis[dim][i]] = (int8_t)dim;
    return duties;
}

static struct cuts cuts_of(const struct goal *goal, const struct duties *at)
{
    struct cuts cuts = {.idle = 1, .pending = 1};
    for (int dim = 0; dim < DIMS_MAX; dim++)
        cuts.parts[dim] = 1;
    for (int axis = 0; axis < goal->mesh->axes; axis++) {
        int8_t duty = at->of[axis];
        int size = goal->mesh->size[axis];
        if (duty < 0)
            cuts.idle *= size;
        else if (duty < DIMS_MAX)
            cuts.parts[duty] *= size;
        else if (goal->duties.of[axis] != DIMS_MAX)
            cuts.pending *= size;
    }
    return cuts;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The elements of all ranks' pieces together. */
static int64_t elements_of(const struct goal *goal, const struct cuts *cuts)
{
    int64_t parts = 1;
    for (int dim = 0; dim < goal->shape->dims; dim++)
        parts *= cuts->parts[dim];
    return goal->whole / parts; /* the same as dividing and rounding down dim by dim */
}

/* A lower bound on the words that all ranks together have to receive.
 *
 * With sums still to be reduced, every element of the goal is new to its rank, so at least all of
 * them are received. Reducing takes at least a reduce-scatter of pieces without replicas, and then
 * the elements that the goal has more of. Without, a rank may already hold what it needs, but along
 * each dim at most the shorter of its two pieces. */
static int64_t least_words(const struct goal *goal, const struct cuts *at)
{
    int64_t wanted = goal->elements, more = wanted - elements_of(goal, at);
    if (at->pending > 1) {
        int64_t summands = elements_of(goal, at) / at->idle;
        int64_t reduced = summands - summands / at->pending;
        return larger(wanted, reduced + larger(0, more + reduced));
    }
    if (goal->mesh->weights)
        return larger(0, more);
    int64_t kept = goal->ranks;
    for (int dim = 0; dim < goal->shape->dims; dim++) {
        int64_t size = goal->shape->size[dim],
                parts = larger(at->parts[dim], goal->cuts.parts[dim]);
        kept *= parts == 1 ? size : (size + parts - 1) / parts;
    }
    return larger(larger(0, more), wanted - kept);
}

/* A step changes the duty of one axis at most. */
static int64_t least_steps(const struct goal *goal, const struct duties *at)
{
    int64_t steps = 0;
    for (int axis = 0; axis < goal->mesh->axes; axis++)
        steps += at->of[axis] != goal->duties.of[axis];
    return steps;
}

/* A lower bound on the cost of the remaining path, counted as redistribute_path() does: words plus
 * the price of the steps. */
static int64_t goal_least_rest(const struct goal *goal, const struct standing *at)
{
    return least_steps(goal, &at->duties) * goal->step_price + least_words(goal, &at->cuts);
}

/* The result of placement_divides() for the placement that stands here. */
static bool goal_divides(const struct goal *goal, const struct standing *at)
{
    const struct shape *shape = goal->shape;
    for (int dim = 0; dim < shape->dims && !shape->uneven; dim++)
        if (!dim_divides(shape->dim[dim], shape->size[dim], at->cuts.parts[dim]))
            return false;
    return true;
}

static struct standing goal_standing(const struct goal *goal, const struct placement *placement)
{
    struct standing standing = {.duties = duties_of(placement, goal->shape->dims)};
    standing.cuts = cuts_of(goal, &standing.duties);
    return standing;
}

/* The arguments are borrowed for as long as the goal is used. */
static struct goal goal_of(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *at)
{
    struct goal goal = {
        .mesh = mesh, .shape = shape, .at = at, .duties = duties_of(at, shape->dims)};
    goal.ranks = goal.whole = mesh_count(mesh);
    for (int dim = 0; dim < shape->dims; dim++)
        goal.whole *= shape->size[dim];
    goal.step_price = STEP_PRICE_WORDS * goal.ranks;
    goal.cuts = cuts_of(&goal, &goal.duties);
    goal.elements = elements_of(&goal, &goal.cuts);
    return goal;
}

/* ---- the search ---- */

/* One placement that the search has reached. */
struct state {
    struct placement at;
    int64_t cost, rest; /* of the path so far; lower bound on what remains */
    int from, length;   /* the state before it, -1 at the start; steps so far */
    struct step step;   /* the step that led here */
    bool done;
};

struct open_state {
    int64_t cost;
    int index;
};

struct search {
    struct goal goal;
    struct state *states;
    size_t count, capacity;
    int *table; /* hash table by placement: index of its state + 1, or 0 */
    size_t table_size;
    struct open_state *open; /* a heap */
    size_t open_count, open_capacity;
    int current;
    int64_t reached; /* the cost of the cheapest path to the goal so far, at first the limit */
};

/* The slot of a placement in the hash table, or the free one where it belongs. */
static int *find_slot(const struct search *search, const struct placement *placement)
{
    int *table = search->table;
    size_t slot = hash_words(HASH_START, placement, sizeof *placement) & (search->table_size - 1);
    assert(table && "a search begins with a state");
    while (table[slot] && !placement_equal(&search->states[table[slot] - 1].at, placement))
        slot = (slot + 1) & (search->table_size - 1);
    return &table[slot];
}

static void add_state(struct search *search, const struct state *state)
{
    search->states = grow(search->states, search->count, &search->capacity, sizeof *search->states);
    search->states[search->count++] = *state;
    if (2 * search->count <= search->table_size) {
        *find_slot(search, &state->at) = (int)search->count;
        return;
    }
    free(search->table);
    search->table_size = search->table_size ? 2 * search->table_size : 64;
    search->table = xcalloc(search->table_size, sizeof *search->table);
    for (size_t i = 0; i < search->count; i++)
        *find_slot(search, &search->states[i].at) = (int)i + 1;
}

/* The order of the heap of open states: cheapest first, among equals the one found first. */
static bool is_cheaper(const struct open_state *a, const struct open_state *b)
{
    return a->cost != b->cost ? a->cost < b->cost : a->index < b->index;
}

static void push_open(struct search *search, struct open_state state)
{
    search->open =
        grow(search->open, search->open_count, &search->open_capacity, sizeof *search->open);
    size_t at = search->open_count++;
    for (; at > 0 && is_cheaper(&state, &search->open[(at - 1) / 2]); at = (at - 1) / 2)
        search->open[at] = search->open[(at - 1) / 2];
    search->open[at] = state;
}

static struct open_state pop_open(struct search *search)
{
    struct open_state first = search->open[0], last = search->open[--search->open_count];
    size_t at = 0, next;
    while ((next = 2 * at + 1) < search->open_count) {
        if (next + 1 < search->open_count &&
            is_cheaper(&search->open[next + 1], &search->open[next]))
            next++;
        if (!is_cheaper(&search->open[next], &last))
            break;
        search->open[at] = search->open[next];
        at = next;
    }
    search->open[at] = last;
    return first;
}

/* The lower bound on what remains after a placement; INT64_MAX when it does not divide. */
static int64_t find_rest(const struct goal *goal, const struct placement *at, bool last)
{
    struct standing there = goal_standing(goal, at);
    if (!goal_divides(goal, &there))
        return INT64_MAX;
    int64_t rest = last ? 0 : goal_least_rest(goal, &there);
    return last || rest > 0 ? rest : goal->step_price;
}

/* Considers one step away from the current state. The cheap tests come first, because counting
 * words is what takes long. */
static void relax(void *context, const struct step *step)
{
    struct search *search = context;
    const struct goal *goal = &search->goal;
    const struct state *current = &search->states[search->current];
    int64_t cost = current->cost + goal->step_price;
    if (cost >= search->reached)
        return;
    int known = *find_slot(search, &step->to);
    const struct state *like = known ? &search->states[known - 1] : NULL;
    if (like && like->cost <= cost)
        return;
    bool last = placement_equal(&step->to, goal->at);
    int64_t rest = like ? like->rest : find_rest(goal, &step->to, last);
    if (rest == INT64_MAX || cost + rest >= search->reached)
        return;
    cost += step_words(goal->mesh, goal->shape, &current->at, step);
    if (cost + rest >= search->reached || (like && like->cost <= cost))
        return;
    struct state state = {step->to, cost, rest, search->current, current->length + 1, *step, false};
    if (last)
        search->reached = cost;
    if (known)
        search->states[known - 1] = state;
    else
        add_state(search, &state);
    push_open(search, (struct open_state){cost, known ? known - 1 : (int)search->count - 1});
}

/* The greedy path: among the steps that lower the bound on what remains, always take the one with
 * the least cost plus bound. */
struct greedy {
    const struct goal *goal;
    struct placement at, best;
    int64_t rest, cost;
    int64_t best_rest, best_cost;
};

static void consider(void *context, const struct step *step)
{
    struct greedy *greedy = context;
    const struct goal *goal = greedy->goal;
    struct standing there = goal_standing(goal, &step->to);
    int64_t rest = goal_least_rest(goal, &there);
    if (rest >= greedy->rest || !goal_divides(goal, &there))
        return;
    int64_t cost = goal->step_price + step_words(goal->mesh, goal->shape, &greedy->at, step);
    if (greedy->best_cost < INT64_MAX && cost + rest >= greedy->best_cost + greedy->best_rest)
        return;
    greedy->best_cost = cost;
    greedy->best_rest = rest;
    greedy->best = step->to;
}

/* The cost of the greedy path, an upper bound on the cheapest; INT64_MAX if it gets stuck. */
static int64_t greedy_cost(const struct goal *goal, const struct placement *from)
{
    struct greedy greedy = {.goal = goal, .at = *from, .rest = INT64_MAX};
    while (!placement_equal(&greedy.at, goal->at)) {
        greedy.best_cost = INT64_MAX;
        step_enumerate(goal->mesh, goal->shape, &greedy.at, consider, &greedy);
        if (greedy.best_cost == INT64_MAX)
            return INT64_MAX;
        greedy.cost += greedy.best_cost;
        greedy.rest = greedy.best_rest;
        greedy.at = greedy.best;
    }
    return greedy.cost;
}

/* Can a path through this state be cheaper than the best known one? The goal itself always passes:
 * its cost is the best known. */
static bool may_lead(const struct search *search, const struct state *state)
{
    return state->rest == 0 || state->cost + state->rest < search->reached;
}

/* The cheapest open state that may still lead to a cheaper path, or -1. A state whose cost fell was
 * pushed again; its outdated entries are recognised by their cost. */
static int cheapest_open(struct search *search)
{
    while (search->open_count > 0) {
        struct open_state next = pop_open(search);
        const struct state *state = &search->states[next.index];
        if (!state->done && state->cost == next.cost && may_lead(search, state))
            return next.index;
    }
    return -1;
}

/* Merges neighbouring steps of one kind into one over the product of their axes. */
static int merge(struct step *steps, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool same = kept > 0 && steps[kept - 1].kind == steps[i].kind &&
                    steps[i].kind != STEP_PERMUTE && steps[i].kind != STEP_ALL_TO_ALL;
        if (same) {
            steps[kept - 1].axes |= steps[i].axes;
            steps[kept - 1].to = steps[i].to;
        } else {
            steps[kept++] = steps[i];
        }
    }
    return kept;
}

/* The number of steps of the cheapest path if it costs less than the limit, with search->current
 * its last state; -EINVAL when there is none. */
static int find_below(struct search *search, const struct placement *from, int64_t limit)
{
    search->reached = limit;
    search->count = search->open_count = 0;
    if (search->table)
        memset(search->table, 0, search->table_size * sizeof *search->table);
    add_state(search, &(struct state){.at = *from, .from = -1});
    push_open(search, (struct open_state){0, 0});
    while ((search->current = cheapest_open(search)) >= 0) {
        struct state *state = &search->states[search->current];
        struct placement at = state->at; /* a copy: relax() may reallocate the states */
        if (placement_equal(&at, search->goal.at))
            return state->length <= STEPS_MAX ? state->length : -EINVAL;
        state->done = true;
        step_enumerate(search->goal.mesh, search->goal.shape, &at, relax, search);
    }
    return -EINVAL;
}

static int find_way(struct search *search, const struct placement *from)
{
    const struct goal *goal = &search->goal;
    struct standing start = goal_standing(goal, from);
    int64_t least = goal_least_rest(goal, &start);
    int length = find_below(search, from, least + 1);
    if (length < 0)
        length = find_below(search, from, least + goal->step_price + 1);
    if (length < 0) {
        int64_t greedy = greedy_cost(goal, from);
        length = find_below(search, from, greedy < INT64_MAX ? greedy + 1 : greedy);
    }
    return length;
}

int redistribute_path(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *from, const struct placement *to, struct step *steps,
                      struct error *err)
{
    if (placement_equal(from, to))
        return 0;
    struct search search = {.goal = goal_of(mesh, shape, to)};
    int count = find_way(&search, from);
    for (int i = count - 1, at = search.current; i >= 0; i--, at = search.states[at].from)
        steps[i] = search.states[at].step;
    free(search.states);
    free(search.open);
    free(search.table);
    if (count < 0) {
        char a[96], b[96];
        return error_set(err, count, "no way from placement %s to %s",
                         placement_print(a, sizeof a, shape->dim, from),
                         placement_print(b, sizeof b, shape->dim, to));
    }
    return merge(steps, count);
}
