/* parts.c - cuts boxes. */
#include "worker/move/parts.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* What is left of a wanted box. */
struct rest {
    struct box *boxes;
    size_t count, capacity;
};

bool offered_gives(const struct offered_state *state, const struct target *target)
{
    const struct move_age *age = &target->age;
    if (state->age.epoch == age->epoch && state->age.step == age->step)
        return true;
    return target->metrics && state->armed && state->ran_in == age->epoch &&
           state->age.step + 1 == age->step;
}

void parts_finish(struct parts *parts)
{
    free(parts->items);
    *parts = (struct parts){0};
}

static void add_rest(struct rest *rest, const struct box *box)
{
    rest->boxes = grow(rest->boxes, rest->count, &rest->capacity, sizeof *rest->boxes);
    rest->boxes[rest->count++] = *box;
}

/* Take from the rest what a state's box has. Goes from the last box to the first, because what is
 * left of a box is appended at the end. */
static void take(struct rest *rest, const struct box *held, const struct part *part,
                 struct parts *out)
{
    for (size_t i = rest->count; i-- > 0;) {
        struct box common, left[2 * DIMS_MAX], box = rest->boxes[i];
        if (!box_overlap(&box, held, &common))
            continue;
        out->items = grow(out->items, out->count, &out->capacity, sizeof *out->items);
        out->items[out->count] = *part;
        out->items[out->count++].box = common;
        rest->boxes[i] = rest->boxes[--rest->count];
        int count = box_subtract(&box, &common, left);
        for (int j = 0; j < count; j++)
            add_rest(rest, &left[j]);
    }
}

static int64_t cut(const struct offer *offers, int ranks, const struct target *target,
                   struct part part, struct rest *rest, struct parts *out)
{
    int64_t missing = 0;
    rest->count = 0;
    add_rest(rest, &offers[part.to].wanted.boxes[part.tensor]);
    for (int i = 0; i < ranks && rest->count > 0; i++) {
        part.from = (part.to + i) % ranks;
        const struct offer *giver = &offers[part.from];
        for (part.state = 0; part.state < giver->state_count; part.state++) {
            const struct offered_state *state = &giver->states[part.state];
            if (state->slices.there[part.tensor] && offered_gives(state, target))
                take(rest, &state->slices.boxes[part.tensor], &part, out);
        }
    }
    for (size_t i = 0; i < rest->count; i++)
        missing += box_count(&rest->boxes[i]);
    return missing;
}

int64_t parts_missing(const struct offer *offers, int ranks, int to, int tensor,
                      const struct target *target)
{
    struct rest rest = {0};
    struct parts ignored = {0};
    int64_t missing =
        cut(offers, ranks, target, (struct part){.to = to, .tensor = tensor}, &rest, &ignored);
    parts_finish(&ignored);
    free(rest.boxes);
    return missing;
}

int64_t parts_cut(const struct offer *offers, int ranks, size_t tensor_count,
                  const struct target *target, struct parts *out)
{
    struct rest rest = {0};
    int64_t missing = 0;
    for (int to = 0; to < ranks; to++)
        for (size_t tensor = 0; tensor < tensor_count; tensor++)
            if (offers[to].wanted.there[tensor])
                missing += cut(offers, ranks, target,
                               (struct part){.to = to, .tensor = (int)tensor}, &rest, out);
    free(rest.boxes);
    return missing;
}
