/* kept.c - a short list of interpreters that run no more. */
#include "worker/executor/kept.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

static void release(struct kept_state *state)
{
    interpreter_release(state->in);
    program_destroy(state->program);
}

void kept_add(struct kept *kept, const struct kept_state *state)
{
    if (kept->count == KEPT_MAX) {
        release(&kept->states[0]);
        kept->count--;
        memmove(kept->states, kept->states + 1, kept->count * sizeof *kept->states);
    }
    interpreter_retire(state->in);
    kept->states[kept->count++] = *state;
}

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

struct kept_held kept_describe(const struct kept *kept)
{
    size_t room = kept->count + (kept->copies ? copies_room(kept->copies) : 0);
    struct kept_held held = {.items = xcalloc(room, sizeof *held.items), .count = kept->count};
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_state *state = &kept->states[i];
        held.slices[i] = move_slices(state->program, buffer_of, state->in);
        held.items[i] = (struct move_held){
            .slices = held.slices[i],
            .slice_count = state->program->parameter_count,
            .age = state->age,
            .armed = interpreter_armed(state->in),
            .ran_in = state->ran_in,
            .metrics = interpreter_applied(state->in),
        };
    }
    if (kept->copies)
        held.count += copies_describe(kept->copies, held.items + held.count);
    return held;
}

void kept_held_finish(struct kept_held *held)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        free(held->slices[i]);
    free(held->items);
}

void kept_apply(struct kept *kept, const struct move *move)
{
    const struct move_decision *decision = move_decided(move);
    for (size_t i = 0; i < kept->count; i++) {
        if (!move_must_apply(move, i))
            continue;
        interpreter_apply(kept->states[i].in, decision->metrics);
        kept->states[i].age = decision->age;
    }
}

void kept_finish(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        release(&kept->states[i]);
    copies_destroy(kept->copies);
    *kept = (struct kept){0};
}
