/* kept.c - a short list of holdings. */
#include "worker/executor/kept.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

static void release(struct kept_state *state)
{
    holding_release(state->holding);
    free(state->slices);
}

static float *at(const struct holding *holding, uint64_t bytes)
{
    return (float *)(void *)(holding_memory(holding) + bytes);
}

static struct kept_state state_of(struct holding *holding)
{
    struct kept_state state = {.holding = holding};
    const struct share *shares = holding_shares(holding, &state.slice_count);
    state.slices = xcalloc(state.slice_count, sizeof *state.slices);
    for (size_t i = 0; i < state.slice_count; i++) {
        struct move_slice *slice = &state.slices[i];
        *slice = (struct move_slice){.tensor = shares[i].tensor, .box = shares[i].box};
        slice->parts[CHECKPOINT_WEIGHT] = at(holding, shares[i].master);
        slice->parts[CHECKPOINT_FIRST] = at(holding, shares[i].first);
        slice->parts[CHECKPOINT_SECOND] = at(holding, shares[i].second);
    }
    return state;
}

void kept_add(struct kept *kept, struct holding *holding)
{
    if (kept->count == KEPT_MAX) {
        release(&kept->states[0]);
        kept->count--;
        memmove(kept->states, kept->states + 1, kept->count * sizeof *kept->states);
    }
    kept->states[kept->count++] = state_of(holding);
}

int kept_open(struct kept *kept, int fd, const struct update_rule *rule, struct error *err)
{
    struct holding *left[HOLDINGS_MAX];
    int rc = estate_open(fd, &kept->estate, err);
    int count = rc < 0 ? rc : estate_take(kept->estate, left, err);
    for (int i = 0; i < count; i++) {
        update_finish(rule, left[i]);
        kept_add(kept, left[i]);
    }
    kept->inherited = count > 0;
    return count < 0 ? count : 0;
}

struct move_held *kept_describe(const struct kept *kept, size_t *count)
{
    size_t room = kept->count + (kept->copies ? copies_room(kept->copies) : 0);
    struct move_held *held = xcalloc(room, sizeof *held);
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_state *state = &kept->states[i];
        const struct standing *standing = holding_standing(state->holding);
        held[i] = (struct move_held){
            .slices = state->slices,
            .slice_count = state->slice_count,
            .age = {standing->epoch, standing->step},
            .armed = standing->armed,
            .ran_in = holding_ran_in(state->holding),
            .metrics = standing->has_metrics ? standing->metrics : NULL,
        };
    }
    *count = kept->count;
    if (kept->copies)
        *count += copies_describe(kept->copies, held + kept->count);
    return held;
}

void kept_apply(struct kept *kept, const struct move *move, const struct update_rule *rule)
{
    for (size_t i = 0; i < kept->count; i++)
        if (move_must_apply(move, i))
            update_holding(rule, kept->states[i].holding, move_decided(move)->metrics);
}

void kept_clear(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        release(&kept->states[i]);
    copies_destroy(kept->copies);
    kept->copies = NULL;
    kept->count = 0;
    kept->inherited = false;
}

void kept_close(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        holding_close(kept->states[i].holding);
        free(kept->states[i].slices);
    }
    copies_destroy(kept->copies);
    estate_close(kept->estate);
    *kept = (struct kept){0};
}
