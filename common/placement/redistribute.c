/* redistribute.c - Dijkstra over the placements of one tensor. */
#include "common/placement/redistribute.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *step_name(enum step_kind kind)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                        "all_to_all", "permute",        "slice"};
    return names[kind];
}

static struct placement without_minor(const struct placement *from, int dim)
{
    struct placement to = *from;
    to.axis[dim][--to.count[dim]] = 0;
    return to;
}

static void enumerate_partial(const struct shape *shape, const struct placement *from, int axis,
                              void (*found)(void *, const struct step *), void *context)
{
    struct step step = {STEP_ALL_REDUCE, 1u << axis, *from};
    step.to.partial &= (uint8_t) ~(1u << axis);
    found(context, &step);
    step.kind = STEP_REDUCE_SCATTER;
    struct placement rest = step.to;
    for (int dim = 0; dim < shape->dims; dim++) {
        step.to = rest;
        placement_append(&step.to, dim, axis);
        found(context, &step);
    }
}

static void enumerate_split(const struct shape *shape, const struct placement *from, int dim,
                            void (*found)(void *, const struct step *), void *context)
{
    int minor = from->axis[dim][from->count[dim] - 1];
    struct placement gathered = without_minor(from, dim);
    struct step step = {STEP_ALL_GATHER, 1u << minor, gathered};
    found(context, &step);
    step.kind = STEP_ALL_TO_ALL;
    for (int other = 0; other < shape->dims; other++) {
        step.to = gathered;
        placement_append(&step.to, other, minor);
        if (other != dim)
            found(context, &step);
    }
    step.kind = STEP_PERMUTE;
    for (int i = 0; i + 1 < from->count[dim]; i++) {
        step.to = *from;
        step.to.axis[dim][i] = from->axis[dim][i + 1];
        step.to.axis[dim][i + 1] = from->axis[dim][i];
        step.axes = 0; /* with an uneven dim all minor axes' pieces move too */
        for (int j = i; j < from->count[dim]; j++)
            step.axes |= 1u << from->axis[dim][j];
        found(context, &step);
    }
}

void step_enumerate(const struct mesh *mesh, const struct shape *shape,
                    const struct placement *from, void (*found)(void *context, const struct step *),
                    void *context)
{
    for (int axis = 0; axis < mesh->axes; axis++)
        if (from->partial >> axis & 1)
            enumerate_partial(shape, from, axis, found, context);
    for (int dim = 0; dim < shape->dims; dim++)
        if (from->count[dim])
            enumerate_split(shape, from, dim, found, context);
    unsigned used = from->partial | placement_split_axes(from);
    for (int axis = 0; axis < mesh->axes; axis++) {
        for (int dim = 0; dim < shape->dims && !(used >> axis & 1); dim++) {
            struct step step = {STEP_SLICE, 0, *from};
            placement_append(&step.to, dim, axis);
            found(context, &step);
        }
    }
}

int64_t step_words(const struct mesh *mesh, const struct shape *shape, const struct placement *from,
                   const struct step *step)
{
    int64_t words = 0, span = mesh_span(mesh, step->axes);
    int count = mesh_count(mesh);
    if (step->kind == STEP_SLICE)
        return 0;
    for (int rank = 0; rank < count; rank++) {
        struct box before = placement_slice(mesh, shape, from, rank), both;
        struct box after = placement_slice(mesh, shape, &step->to, rank);
        if (step->kind == STEP_ALL_REDUCE)
            words += 2 * box_count(&before) * (span - 1);
        else if (step->kind == STEP_REDUCE_SCATTER)
            words += box_count(&before) - box_count(&after);
        else
            words +=
                box_count(&after) - (box_overlap(&before, &after, &both) ? box_count(&both) : 0);
    }
    return step->kind == STEP_ALL_REDUCE ? words / span : words;
}

/* One placement that the search has come upon. */
struct state {
    struct placement at;
    int64_t cost;
    int from, length;
    struct step step; /* that led here */
    bool done;
};

struct search {
    const struct mesh *mesh;
    const struct shape *shape;
    struct state *states;
    size_t count, capacity;
    int current;
};

static void relax(void *context, const struct step *step)
{
    struct search *search = context;
    char dim;
    int parts;
    if (!placement_divides(search->mesh, search->shape, &step->to, &dim, &parts))
        return;
    struct placement from = search->states[search->current].at;
    int64_t cost = search->states[search->current].cost +
                   step_words(search->mesh, search->shape, &from, step) +
                   (int64_t)STEP_PRICE_WORDS * mesh_count(search->mesh);
    size_t i = 0;
    while (i < search->count && !placement_equal(&search->states[i].at, &step->to))
        i++;
    if (i < search->count && search->states[i].cost <= cost)
        return;
    search->states = grow(search->states, search->count, &search->capacity, sizeof *search->states);
    search->states[i] = (struct state){
        step->to, cost, search->current, search->states[search->current].length + 1, *step, false};
    if (i == search->count)
        search->count++;
}

static int cheapest_open(const struct search *search)
{
    int best = -1;
    for (size_t i = 0; i < search->count; i++)
        if (!search->states[i].done &&
            (best < 0 || search->states[i].cost < search->states[best].cost))
            best = (int)i;
    return best;
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
    struct search search = {.mesh = mesh, .shape = shape};
    search.states = grow(NULL, 0, &search.capacity, sizeof *search.states);
    search.states[search.count++] = (struct state){.at = *from, .from = -1};

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
    if (rc < 0) {
        char a[96], b[96];
        return error_set(err, rc, "no way from placement %s to %s",
                         placement_print(a, sizeof a, shape->dim, from),
                         placement_print(b, sizeof b, shape->dim, to));
    }
    return merge(steps, rc);
}
