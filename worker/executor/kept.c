/* kept.c - a short list of interpreters that run no more. */
#include "worker/executor/kept.h"

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

void kept_describe(const struct kept *kept, struct move_held *out)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_state *state = &kept->states[i];
        out[i] = (struct move_held){
            .program = state->program,
            .age = state->age,
            .armed = interpreter_armed(state->in),
            .ran_in = state->ran_in,
            .buffer = buffer_of,
            .context = state->in,
        };
        memcpy(out[i].metrics, interpreter_applied(state->in), sizeof out[i].metrics);
    }
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
    *kept = (struct kept){0};
}
