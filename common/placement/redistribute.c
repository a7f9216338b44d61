/* redistribute.c - Dijkstra over the placements of one tensor. */
#include "common/placement/redistribute.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an axis does in a placement: it splits dim i, or is partial, or in neither. */
struct duties {
    int8_t of[AXES_MAX];
};

static struct duties duties_of(const struct placement *placement, int dims)
{
    struct duties duties;
    for (int axis = 0; axis < AXES_MAX; axis++)
        duties.of[axis] = placement->partial >> axis & 1 ? DIMS_MAX : -1;
    for (int dim = 0; dim < dims; dim++)
        for (int i = 0; i < placement->count[dim]; i++)
            duties.of[placement->axis[dim][i]] = (int8_t)dim;
    return duties;
}

/* One placement that the search has come upon. */
struct state {
    struct placement at;
    int64_t cost;
    int from, length;
    struct step step; /* that led here */
    bool done;
};

/* How a placement cuts: the ranks along each dim, of the axes in neither, and of those over which
 * sums have yet to be finished. */
struct cuts {
    int64_t parts[DIMS_MAX], idle, pending;
};

struct open_state {
    int64_t cost;
    int index;
};

struct search {
    const struct mesh *mesh;
    const struct shape *shape;
    struct state *states;
    size_t count, capacity;
    int *table; /* by the hash of a placement: index of its state + 1, or 0 */
    size_t table_size;
    struct open_state *open; /* a heap */
    size_t open_count, open_capacity;
    int current;
    const struct placement *goal;
    struct duties goal_duties;
    struct cuts goal_cuts;
    int64_t goal_elements, all; /* all: if every rank had everything */
    int64_t ranks;
    int64_t price;   /* of a step, besides its words */
    int64_t reached; /* what the cheapest way to the goal costs so far */
};

/* Where a placement stands in the table, or would. */
static size_t slot_of(const struct search *search, const struct placement *placement)
{
    size_t slot = hash_words(HASH_START, placement, sizeof *placement) & (search->table_size - 1);
    while (search->table[slot] &&
           !placement_equal(&search->states[search->table[slot] - 1].at, placement))
        slot = (slot + 1) & (search->table_size - 1);
    return slot;
}

static void add_state(struct search *search, const struct state *state)
{
    search->states = grow(search->states, search->count, &search->capacity, sizeof *search->states);
    search->states[search->count++] = *state;
    if (2 * search->count <= search->table_size) {
        search->table[slot_of(search, &state->at)] = (int)search->count;
        return;
    }
    free(search->table);
    search->table_size = search->table_size ? 2 * search->table_size : 64;
    search->table = xcalloc(search->table_size, sizeof *search->table);
    for (size_t i = 0; i < search->count; i++)
        search->table[slot_of(search, &search->states[i].at)] = (int)i + 1;
}

static struct cuts cuts_of(const struct search *search, const struct duties *at)
{
    struct cuts cuts = {{1, 1, 1, 1, 1}, 1, 1};
    for (int axis = 0; axis < search->mesh->axes; axis++) {
        int8_t duty = at->of[axis];
        int size = search->mesh->size[axis];
        if (duty < 0)
            cuts.idle *= size;
        else if (duty < DIMS_MAX)
            cuts.parts[duty] *= size;
        else if (search->goal_duties.of[axis] != DIMS_MAX)
            cuts.pending *= size;
    }
    return cuts;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Elements of all ranks' pieces. */
static int64_t elements_of(const struct search *search, const struct cuts *cuts)
{
    int64_t elements = search->all;
    for (int dim = 0; dim < search->shape->dims; dim++)
        elements /= cuts->parts[dim];
    return elements;
}

/* Words that ranks have to receive on a way from there. A sum that is finished takes as much as a
 * reduce-scatter of pieces that nobody holds twice, and then what the goal has more; and it is new
 * to each rank. What is finished a rank has as far as its piece is as long as in the goal. */
static int64_t least_words(const struct search *search, const struct cuts *at)
{
    int64_t goal = search->goal_elements, more = goal - elements_of(search, at);
    if (at->pending > 1) {
        int64_t summands = elements_of(search, at) / at->idle;
        int64_t reduced = summands - summands / at->pending;
        return larger(goal, reduced + larger(0, more + reduced));
    }
    if (search->mesh->weights)
        return larger(0, more);
    int64_t kept = search->ranks;
    for (int dim = 0; dim < search->shape->dims; dim++) {
        int64_t parts = larger(at->parts[dim], search->goal_cuts.parts[dim]);
        kept *= (search->shape->size[dim] + parts - 1) / parts;
    }
    return larger(larger(0, more), goal - kept);
}

/* No step gives another duty to more than one axis. */
static int64_t least_steps(const struct search *search, const struct duties *at)
{
    int64_t steps = 0;
    for (int axis = 0; axis < search->mesh->axes; axis++)
        steps += at->of[axis] != search->goal_duties.of[axis];
    return steps;
}

/* What a way on from there costs at least. */
static int64_t least_rest(const struct search *search, const struct duties *at,
                          const struct cuts *cuts)
{
    return least_steps(search, at) * search->price + least_words(search, cuts);
}

/* placement_divides(). */
static bool divides(const struct search *search, const struct cuts *cuts)
{
    const struct shape *shape = search->shape;
    for (int dim = 0; dim < shape->dims && !shape->uneven; dim++)
        if (cuts->parts[dim] > 1 && shape->dim[dim] != 'b' &&
            shape->size[dim] % cuts->parts[dim] != 0)
            return false;
    return true;
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

static void relax(void *context, const struct step *step)
{
    struct search *search = context;
    const struct state *current = &search->states[search->current];
    int64_t cost = current->cost + search->price;
    if (cost >= search->reached)
        return;
    bool last = placement_equal(&step->to, search->goal);
    struct duties duties = duties_of(&step->to, search->shape->dims);
    struct cuts cuts = cuts_of(search, &duties);
    int64_t rest = last ? 0 : least_rest(search, &duties, &cuts);
    rest = last || rest > 0 ? rest : search->price;
    if (cost + rest >= search->reached || !divides(search, &cuts))
        return;
    int known = search->table[slot_of(search, &step->to)];
    if (known && search->states[known - 1].cost <= cost)
        return; /* counting words is what takes long */
    cost += step_words(search->mesh, search->shape, &current->at, step);
    if (cost + rest >= search->reached || (known && search->states[known - 1].cost <= cost))
        return;
    struct state state = {step->to, cost, search->current, current->length + 1, *step, false};
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
    const struct search *search;
    struct placement at, best;
    int64_t rest, cost;
    int64_t best_rest, best_cost;
};

static void consider(void *context, const struct step *step)
{
    struct greedy *greedy = context;
    const struct search *search = greedy->search;
    struct duties duties = duties_of(&step->to, search->shape->dims);
    struct cuts cuts = cuts_of(search, &duties);
    int64_t rest = least_rest(search, &duties, &cuts);
    if (rest >= greedy->rest || !divides(search, &cuts))
        return;
    int64_t cost = search->price + step_words(search->mesh, search->shape, &greedy->at, step);
    if (greedy->best_cost < INT64_MAX && cost + rest >= greedy->best_cost + greedy->best_rest)
        return;
    greedy->best_cost = cost;
    greedy->best_rest = rest;
    greedy->best = step->to;
}

/* What a greedy way costs: the cheapest costs no more. INT64_MAX: it does not arrive. */
static int64_t greedy_cost(const struct search *search, const struct placement *from)
{
    struct greedy greedy = {.search = search, .at = *from, .rest = INT64_MAX};
    while (!placement_equal(&greedy.at, search->goal)) {
        greedy.best_cost = INT64_MAX;
        step_enumerate(search->mesh, search->shape, &greedy.at, consider, &greedy);
        if (greedy.best_cost == INT64_MAX)
            return INT64_MAX;
        greedy.cost += greedy.best_cost;
        greedy.rest = greedy.best_rest;
        greedy.at = greedy.best;
    }
    return greedy.cost;
}

/* The cheapest state that is not done, or -1. One that became cheaper is on the heap again. */
static int cheapest_open(struct search *search)
{
    while (search->open_count > 0) {
        struct open_state next = pop_open(search);
        if (!search->states[next.index].done && search->states[next.index].cost == next.cost)
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

int redistribute_path(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *from, const struct placement *to, struct step *steps,
                      struct error *err)
{
    if (placement_equal(from, to))
        return 0;
    struct search search = {
        .mesh = mesh, .shape = shape, .goal = to, .goal_duties = duties_of(to, shape->dims)};
    search.ranks = search.all = mesh_count(mesh);
    for (int dim = 0; dim < shape->dims; dim++)
        search.all *= shape->size[dim];
    search.price = STEP_PRICE_WORDS * search.ranks;
    search.goal_cuts = cuts_of(&search, &search.goal_duties);
    search.goal_elements = elements_of(&search, &search.goal_cuts);
    search.reached = greedy_cost(&search, from);
    search.reached += search.reached < INT64_MAX; /* another one may be as cheap */
    add_state(&search, &(struct state){.at = *from, .from = -1});
    push_open(&search, (struct open_state){0, 0});

    int rc = -EINVAL;
    while ((search.current = cheapest_open(&search)) >= 0) {
        struct state *state = &search.states[search.current];
        if (placement_equal(&state->at, to)) {
            rc = state->length;
            break;
        }
        state->done = true;
        struct placement at = state->at;
        step_enumerate(mesh, shape, &at, relax, &search);
    }
    if (rc > STEPS_MAX)
        rc = -EINVAL;
    for (int i = rc - 1, at = search.current; i >= 0; i--, at = search.states[at].from)
        steps[i] = search.states[at].step;
    free(search.states);
    free(search.open);
    free(search.table);
    if (rc < 0) {
        char a[96], b[96];
        return error_set(err, rc, "no way from placement %s to %s",
                         placement_print(a, sizeof a, shape->dim, from),
                         placement_print(b, sizeof b, shape->dim, to));
    }
    return merge(steps, rc);
}
