/* redistribute.c - Dijkstra over the placements of one tensor, within a limit.
 *
 * What cannot lead to the goal for less than the limit, by what goal.h says of the rest at least,
 * is not looked at. Most ways cost no more than that says of the whole, and most others a step
 * more: these limits come first, for they leave little to look at. Where there is no such way,
 * what a greedy one costs is the limit. */
#include "common/placement/redistribute.h"

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/placement/goal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One placement that the search has come upon. */
struct state {
    struct placement at;
    int64_t cost, rest; /* what it took, and what a way on costs at least */
    int from, length;
    struct step step; /* that led here */
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
    int *table; /* by the hash of a placement: index of its state + 1, or 0 */
    size_t table_size;
    struct open_state *open; /* a heap */
    size_t open_count, open_capacity;
    int current;
    int64_t reached; /* what the cheapest way to the goal costs so far */
};

/* Where a placement stands in the table, or would. */
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

/* The heap of open states, the cheapest first, of equal ones that which was found first. */
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

/* What a way on from a placement costs at least; INT64_MAX: it cannot be. */
static int64_t find_rest(const struct goal *goal, const struct placement *at, bool last)
{
    struct standing there = goal_standing(goal, at);
    if (!goal_divides(goal, &there))
        return INT64_MAX;
    int64_t rest = last ? 0 : goal_least_rest(goal, &there);
    return last || rest > 0 ? rest : goal->step_price;
}

/* What is known of a state is asked for first: counting words is what takes long. */
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

/* One step of a greedy way: of those that leave less to be done the one that seems to lead to the
 * goal most cheaply. */
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

/* What a greedy way costs: the cheapest costs no more. INT64_MAX: it does not arrive. */
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

/* Does a way over this state end up cheaper than the one that is known? The goal's own does. */
static bool may_lead(const struct search *search, const struct state *state)
{
    return state->rest == 0 || state->cost + state->rest < search->reached;
}

/* The cheapest state that is not done and may lead to the goal for less, or -1. One that became
 * cheaper is on the heap again. */
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

/* Neighbouring steps of one kind become one over the product of their axes. */
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

/* The length of the cheapest way, whose last state is current then, if it costs less than the
 * limit; -EINVAL: there is none. */
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
        struct placement at = state->at; /* states move as they are added to */
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
