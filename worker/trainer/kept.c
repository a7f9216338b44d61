/* kept.c - a short list of holdings, ordered by the epoch that left each. */
#include "worker/trainer/kept.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef void part_with_fn(struct holding *holding);

static void kept_let_go(struct kept_epoch *epoch, part_with_fn *part_with)
{
    struct kept_holding *all[] = {&epoch->state, &epoch->copies[0], &epoch->copies[1]};
    static_assert(COPIES_SLOTS == 2, "all of them");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->holding)
            part_with(all[i]->holding);
        free(all[i]->slices);
    }
}

static struct kept_holding kept_slices(struct holding *holding)
{
    struct kept_holding kept = {.holding = holding};
    const struct share *shares = holding_shares(holding, &kept.slice_count);
    kept.slices = xcalloc(kept.slice_count, sizeof *kept.slices);
    for (size_t i = 0; i < kept.slice_count; i++) {
        struct state_slice *slice = &kept.slices[i];
        *slice = (struct state_slice){.tensor = shares[i].tensor, .box = shares[i].box};
        slice->parts[STATE_WEIGHT] = holding_at(holding, shares[i].master);
        slice->parts[STATE_FIRST] = holding_at(holding, shares[i].first);
        slice->parts[STATE_SECOND] = holding_at(holding, shares[i].second);
    }
    return kept;
}

/* The state was only moved here: as far as this rank knows, no step was applied in its epoch. */
static bool is_only_moved(const struct kept_epoch *epoch)
{
    if (!epoch->state.holding)
        return false;
    const struct standing *standing = holding_standing(epoch->state.holding);
    return !standing->armed && standing->epoch != epoch->number;
}

/* Drop the newest epoch whose state was only moved, because it can be moved again. The oldest is
 * never chosen before those, as it is what others were moved from, in a move that may have
 * failed. */
static void kept_make_room(struct kept *kept)
{
    size_t gone = kept->count - 1;
    while (gone > 0 && !is_only_moved(&kept->epochs[gone]))
        gone--;
    kept_let_go(&kept->epochs[gone], holding_release);
    kept->count--;
    memmove(&kept->epochs[gone], &kept->epochs[gone + 1],
            (kept->count - gone) * sizeof *kept->epochs);
}

static struct kept_epoch *epoch_of(struct kept *kept, uint64_t number)
{
    if (kept->count > 0 && kept->epochs[kept->count - 1].number == number)
        return &kept->epochs[kept->count - 1];
    if (kept->count == KEPT_MAX)
        kept_make_room(kept);
    struct kept_epoch *epoch = &kept->epochs[kept->count++];
    *epoch = (struct kept_epoch){.number = number};
    return epoch;
}

void kept_add(struct kept *kept, struct holding *holding)
{
    struct kept_epoch *epoch = epoch_of(kept, holding_ran_in(holding));
    struct kept_holding *to = &epoch->state;
    if (holding_kind(holding) == HOLDING_COPY)
        to = epoch->copies[0].holding ? &epoch->copies[1] : &epoch->copies[0];
    *to = kept_slices(holding);
}

int kept_open(struct kept *kept, int fd, const struct update_rule *rule, struct error *err)
{
    struct holding *left[HOLDINGS_MAX];
    int rc = estate_open(fd, &kept->estate, err);
    int count = rc < 0 ? rc : estate_take(kept->estate, left, err);
    for (int i = 0; i < count; i++) {
        if (holding_kind(left[i]) == HOLDING_STATE)
            update_finish(rule, left[i]);
        kept_add(kept, left[i]);
    }
    kept->inherited = count > 0;
    return count < 0 ? count : 0;
}

struct described {
    struct move_held *held;
    size_t count, capacity;
};

static void kept_describe_one(struct described *out, const struct kept_holding *kept, size_t first,
                              size_t count)
{
    const struct standing *standing = holding_standing(kept->holding);
    out->held = grow(out->held, out->count, &out->capacity, sizeof *out->held);
    out->held[out->count++] = (struct move_held){
        .slices = kept->slices + first,
        .slice_count = count,
        .age = {standing->epoch, standing->step},
        .armed = standing->armed,
        .ran_in = holding_ran_in(kept->holding),
        .metrics = standing->has_metrics ? standing->metrics : NULL,
    };
}

/* A copy holds slices of several ranks, one rank after another, each in the order of tensors. An
 * offer to move_meet has one slice per tensor, so a copy becomes several. */
static void describe_copy(struct described *out, const struct kept_holding *copy)
{
    size_t first = 0;
    for (size_t i = 1; copy->holding && i <= copy->slice_count; i++) {
        if (i < copy->slice_count && copy->slices[i].tensor > copy->slices[i - 1].tensor)
            continue;
        kept_describe_one(out, copy, first, i - first);
        first = i;
    }
}

struct move_held *kept_describe(const struct kept *kept, size_t *count)
{
    struct described out = {0};
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_holding *state = &kept->epochs[i].state;
        if (state->holding)
            kept_describe_one(&out, state, 0, state->slice_count);
    }
    for (size_t i = 0; i < kept->count; i++)
        for (int slot = 0; slot < COPIES_SLOTS; slot++)
            describe_copy(&out, &kept->epochs[i].copies[slot]);
    *count = out.count;
    return out.held;
}

void kept_apply(struct kept *kept, const struct move *move, const struct update_rule *rule)
{
    size_t index = 0;
    for (size_t i = 0; i < kept->count; i++) {
        struct holding *state = kept->epochs[i].state.holding;
        if (state && move_must_apply(move, index++))
            update_holding(rule, state, move_decided(move)->metrics);
    }
}

void kept_clear(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        kept_let_go(&kept->epochs[i], holding_release);
    kept->count = 0;
    kept->inherited = false;
}

void kept_close(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        kept_let_go(&kept->epochs[i], holding_close);
    estate_close(kept->estate);
    *kept = (struct kept){0};
}
