/* inventory.c - inventories as messages, and back; and boxes that are cut. What comes from another
 * rank is checked. */
#include "worker/move/inventory.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "proto/executor.pb-c.h"

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

static void free_written(struct written *written)
{
    free(written->items);
    free(written->pointers);
    free(written->numbers);
}

void *inventory_pack(const struct move_config *config, size_t *size)
{
    size_t count = config->held_count;
    Gimbal__MoveOffer inventory = GIMBAL__MOVE_OFFER__INIT;
    Gimbal__MoveState *states = xcalloc(count, sizeof *states);
    struct written *written = xcalloc(count + 1, sizeof *written), *wanted = &written[count];
    inventory.states = xcalloc(count, sizeof(Gimbal__MoveState *));
    for (; inventory.n_states < count; inventory.n_states++) {
        const struct move_held *held = &config->held[inventory.n_states];
        struct written *of = &written[inventory.n_states];
        Gimbal__MoveState *state = inventory.states[inventory.n_states] =
            &states[inventory.n_states];
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
    inventory.n_wanted = config->program ? config->program->parameter_count : 0;
    inventory.wanted = wanted->pointers =
        write_slices(slices, inventory.n_wanted, &wanted->items, &wanted->numbers);
    void *bytes = message_pack(&inventory.base, size);
    for (size_t i = 0; i <= count; i++)
        free_written(&written[i]);
    free(slices);
    free(inventory.states);
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
    const struct box whole = tensor_box(tensor, 0); /* no weight has a dim of samples */
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
                       struct inventory_slices *out, struct error *err)
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

int inventory_unpack(const void *bytes, size_t size, const struct graph *graph,
                     struct inventory *out, struct error *err)
{
    ProtobufCMessage *message;
    *out = (struct inventory){0};
    int rc = message_unpack(&gimbal__move_offer__descriptor, bytes, size, message_quota(size),
                            &message, err);
    if (rc < 0)
        return rc;
    const Gimbal__MoveOffer *inventory = (const Gimbal__MoveOffer *)message;
    out->states = xcalloc(inventory->n_states, sizeof *out->states);
    rc = read_slices(inventory->wanted, inventory->n_wanted, graph, &out->wanted, err);
    for (; out->state_count < inventory->n_states && rc == 0; out->state_count++) {
        const Gimbal__MoveState *from = inventory->states[out->state_count];
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

static void free_slices(struct inventory_slices *slices)
{
    free(slices->boxes);
    free(slices->there);
}

void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->state_count; i++)
        free_slices(&inventory->states[i].slices);
    free_slices(&inventory->wanted);
    free(inventory->states);
}

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

void transfers_finish(struct transfers *transfers)
{
    free(transfers->items);
    *transfers = (struct transfers){0};
}

static void add_rest(struct rest *rest, const struct box *box)
{
    rest->boxes = grow(rest->boxes, rest->count, &rest->capacity, sizeof *rest->boxes);
    rest->boxes[rest->count++] = *box;
}

/* Take from the rest what a state's box has. Goes from the last box to the first, because what is
 * left of a box is appended at the end. */
static void take_from_rest(struct rest *rest, const struct box *held,
                           const struct transfer *transfer, struct transfers *out)
{
    for (size_t i = rest->count; i-- > 0;) {
        struct box common, left[2 * DIMS_MAX], box = rest->boxes[i];
        if (!box_overlap(&box, held, &common))
            continue;
        out->items = grow(out->items, out->count, &out->capacity, sizeof *out->items);
        out->items[out->count] = *transfer;
        out->items[out->count++].box = common;
        rest->boxes[i] = rest->boxes[--rest->count];
        int count = box_subtract(&box, &common, left);
        for (int j = 0; j < count; j++)
            add_rest(rest, &left[j]);
    }
}

static int64_t cut_wanted(const struct inventory *inventories, int ranks,
                          const struct target *target, struct transfer transfer, struct rest *rest,
                          struct transfers *out)
{
    int64_t missing = 0;
    rest->count = 0;
    add_rest(rest, &inventories[transfer.to].wanted.boxes[transfer.tensor]);
    for (int i = 0; i < ranks && rest->count > 0; i++) {
        transfer.from = (transfer.to + i) % ranks;
        const struct inventory *giver = &inventories[transfer.from];
        for (transfer.state = 0; transfer.state < giver->state_count; transfer.state++) {
            const struct offered_state *state = &giver->states[transfer.state];
            if (state->slices.there[transfer.tensor] && offered_gives(state, target))
                take_from_rest(rest, &state->slices.boxes[transfer.tensor], &transfer, out);
        }
    }
    for (size_t i = 0; i < rest->count; i++)
        missing += box_count(&rest->boxes[i]);
    return missing;
}

int64_t transfers_cut(const struct inventory *inventories, int ranks, size_t tensor_count,
                      const struct target *target, struct transfers *out)
{
    struct rest rest = {0};
    int64_t missing = 0;
    for (int to = 0; to < ranks; to++)
        for (size_t tensor = 0; tensor < tensor_count; tensor++)
            if (inventories[to].wanted.there[tensor])
                missing +=
                    cut_wanted(inventories, ranks, target,
                               (struct transfer){.to = to, .tensor = (int)tensor}, &rest, out);
    free(rest.boxes);
    return missing;
}
