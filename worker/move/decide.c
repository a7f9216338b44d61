/* decide.c - finds the newest state that is complete.
 *
 * Ages are ordered by epoch, then by step: what a later epoch has finished follows from the state
 * it began with, whatever an earlier epoch had achieved beyond that. */
#include "worker/move/decide.h"

#include <string.h>

static bool is_newer(const struct move_age *a, const struct move_age *b)
{
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->step > b->step;
}

/* The newest state that is older than `limit`; NULL: none. */
static const struct offered_state *next_older(const struct offer *offers, int ranks,
                                              const struct move_age *limit)
{
    const struct offered_state *newest = NULL;
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < offers[rank].state_count; i++) {
            const struct offered_state *state = &offers[rank].states[i];
            if (is_newer(limit, &state->age) && (!newest || is_newer(&state->age, &newest->age)))
                newest = state;
        }
    return newest;
}

/* The metrics of the step that produced states of this age; NULL: nobody knows them. */
static const float *find_metrics(const struct offer *offers, int ranks, const struct move_age *age)
{
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < offers[rank].state_count; i++) {
            const struct offered_state *state = &offers[rank].states[i];
            if (state->has_metrics && state->age.epoch == age->epoch &&
                state->age.step == age->step)
                return state->metrics;
        }
    return NULL;
}

struct move_decision move_decide(const struct offer *offers, int ranks, size_t tensor_count,
                                 const struct move_age *disk, struct parts *out)
{
    struct move_decision decision = {.source = MOVE_FRESH};
    struct target target = {.age = {UINT64_MAX, UINT64_MAX}};
    const struct offered_state *state;
    if (disk)
        decision = (struct move_decision){.source = MOVE_DISK, .age = *disk};
    while ((state = next_older(offers, ranks, &target.age)) &&
           !(disk && is_newer(disk, &state->age))) {
        target.age = state->age;
        target.metrics = find_metrics(offers, ranks, &target.age);
        if (parts_cut(offers, ranks, tensor_count, &target, out) == 0) {
            decision.source = MOVE_MEMORY;
            decision.age = target.age;
            decision.has_metrics = target.metrics != NULL;
            if (target.metrics)
                memcpy(decision.metrics, target.metrics, sizeof decision.metrics);
            return decision;
        }
        parts_finish(out);
    }
    return decision;
}
