/* offer.c - offers as messages, and back. What comes from another rank is checked. */
#include "worker/move/offer.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "proto/move.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Slices as messages, without data. Their numbers lie in one block, *numbers. */
static Gimbal__MoveSlice **write_slices(const struct state_slice *slices, size_t count,
                                        Gimbal__MoveSlice **items, uint64_t **numbers)
{
    *items = xcalloc(count, sizeof **items);
    *numbers = xcalloc(count * 2 * DIMS_MAX, sizeof **numbers);
    Gimbal__MoveSlice **pointers = xcalloc(count, sizeof(Gimbal__MoveSlice *));
    for (size_t i = 0; i < count; i++) {
        const struct box *box = &slices[i].box;
        Gimbal__MoveSlice *slice = pointers[i] = &(*items)[i];
        gimbal__move_slice__init(slice);
        slice->tensor = (uint32_t)slices[i].tensor;
        slice->low = *numbers + i * 2 * DIMS_MAX;
        slice->high = slice->low + DIMS_MAX;
        slice->n_low = slice->n_high = (size_t)box->dims;
        for (int dim = 0; dim < box->dims; dim++) {
            slice->low[dim] = (uint64_t)box->low[dim];
            slice->high[dim] = (uint64_t)box->high[dim];
        }
    }
    return pointers;
}

/* The slices of the new program, without data. */
static struct state_slice *wanted_slices(const struct program *program)
{
    struct state_slice *slices = xcalloc(program->parameter_count, sizeof *slices);
    for (size_t i = 0; i < program->parameter_count; i++)
        slices[i] = (struct state_slice){.tensor = program->parameters[i].tensor,
                                         .box = program->parameters[i].box};
    return slices;
}

struct written {
    Gimbal__MoveSlice *items, **pointers;
    uint64_t *numbers;
    uint32_t metrics[METRICS];
};

static void written_finish(struct written *written)
{
    free(written->items);
    free(written->pointers);
    free(written->numbers);
}

void *offer_pack(const struct move_config *config, size_t *size)
{
    size_t count = config->held_count;
    Gimbal__MoveOffer offer = GIMBAL__MOVE_OFFER__INIT;
    Gimbal__MoveState *states = xcalloc(count, sizeof *states);
    struct written *written = xcalloc(count + 1, sizeof *written), *wanted = &written[count];
    offer.states = xcalloc(count, sizeof(Gimbal__MoveState *));
    for (; offer.n_states < count; offer.n_states++) {
        const struct move_held *held = &config->held[offer.n_states];
        struct written *of = &written[offer.n_states];
        Gimbal__MoveState *state = offer.states[offer.n_states] = &states[offer.n_states];
        gimbal__move_state__init(state);
        state->epoch = held->age.epoch;
        state->step = held->age.step;
        state->armed = held->armed;
        state->ran_in = held->ran_in;
        if (held->metrics) {
            memcpy(of->metrics, held->metrics, sizeof of->metrics);
            state->metrics = of->metrics;
            state->n_metrics = METRICS;
        }
        state->n_slices = held->slice_count;
        state->slices = of->pointers =
            write_slices(held->slices, held->slice_count, &of->items, &of->numbers);
    }
    struct state_slice *slices = config->program ? wanted_slices(config->program) : NULL;
    offer.n_wanted = config->program ? config->program->parameter_count : 0;
    offer.wanted = wanted->pointers =
        write_slices(slices, offer.n_wanted, &wanted->items, &wanted->numbers);
    void *bytes = message_pack(&offer.base, size);
    for (size_t i = 0; i <= count; i++)
        written_finish(&written[i]);
    free(slices);
    free(offer.states);
    free(written);
    free(states);
    return bytes;
}

static int read_box(const Gimbal__MoveSlice *slice, const struct graph *graph, struct box *box,
                    struct error *err)
{
    if (slice->tensor >= graph->tensor_count)
        return error_set(err, -EPROTO, "there is no tensor %u", slice->tensor);
    const struct tensor *tensor = &graph->tensors[slice->tensor];
    const struct sizes sizes = graph_sizes(graph, 1); /* no weight has a dim of samples */
    const struct box whole = box_whole(tensor->dims, &sizes);
    bool right = slice->n_low == (size_t)whole.dims && slice->n_high == slice->n_low;
    box->dims = whole.dims;
    for (int dim = 0; dim < whole.dims && right; dim++) {
        box->low[dim] = (int64_t)slice->low[dim];
        box->high[dim] = (int64_t)slice->high[dim];
        right =
            slice->low[dim] <= slice->high[dim] && slice->high[dim] <= (uint64_t)whole.high[dim];
    }
    return right ? 0 : error_set(err, -EPROTO, "a slice of '%s' is no piece of it", tensor->name);
}

static int read_slices(Gimbal__MoveSlice *const *slices, size_t count, const struct graph *graph,
                       struct slices *out, struct error *err)
{
    out->boxes = xcalloc(graph->tensor_count, sizeof *out->boxes);
    out->there = xcalloc(graph->tensor_count, sizeof *out->there);
    for (size_t i = 0; i < count; i++) {
        struct box box;
        int rc = read_box(slices[i], graph, &box, err);
        if (rc < 0)
            return rc;
        out->boxes[slices[i]->tensor] = box;
        out->there[slices[i]->tensor] = box_count(&box) > 0;
    }
    return 0;
}

int offer_unpack(const void *bytes, size_t size, const struct graph *graph, struct offer *out,
                 struct error *err)
{
    ProtobufCMessage *message;
    *out = (struct offer){0};
    int rc = message_unpack(&gimbal__move_offer__descriptor, bytes, size, message_quota(size),
                            &message, err);
    if (rc < 0)
        return rc;
    const Gimbal__MoveOffer *offer = (const Gimbal__MoveOffer *)message;
    out->states = xcalloc(offer->n_states, sizeof *out->states);
    rc = read_slices(offer->wanted, offer->n_wanted, graph, &out->wanted, err);
    for (; out->state_count < offer->n_states && rc == 0; out->state_count++) {
        const Gimbal__MoveState *from = offer->states[out->state_count];
        struct offered_state *state = &out->states[out->state_count];
        *state = (struct offered_state){
            .age = {from->epoch, from->step}, .armed = from->armed, .ran_in = from->ran_in};
        rc = read_slices(from->slices, from->n_slices, graph, &state->slices, err);
        state->has_metrics = from->n_metrics == METRICS;
        if (state->has_metrics)
            memcpy(state->metrics, from->metrics, sizeof state->metrics);
    }
    message_free(message);
    return rc;
}

static void slices_finish(struct slices *slices)
{
    free(slices->boxes);
    free(slices->there);
}

void offer_finish(struct offer *offer)
{
    for (size_t i = 0; i < offer->state_count; i++)
        slices_finish(&offer->states[i].slices);
    slices_finish(&offer->wanted);
    free(offer->states);
}
