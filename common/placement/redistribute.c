/* redistribute.c - Dijkstra's algorithm over the placements of one tensor, within a cost limit.
 *
 * A state is dropped when its cost so far plus the lower bound on the rest (goal.h) is not below
 * the limit. Low limits leave little to search, so they are tried first: the lower bound of the
 * whole path, which most paths meet, then one step more, which suffices for most others. Only then
 * is the limit the cost of a greedy path. */
#include "common/placement/redistribute.h"

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/placement/goal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
