/* keeping.c - keeps the holding of an interpreter's state up to date while steps go by, so that the
 * state can outlive the process. */
#include "common/base/memory.h"
#include "worker/interpreter/internal.h"

#include <assert.h>
#include <stdlib.h>

/* Offset of a buffer in the state region, where finished gradients lie too. */
static uint64_t place_of(const struct program *program, int buffer)
{
    assert(program->buffers[buffer].region == REGION_STATE);
    return program->buffers[buffer].offset;
}

/* With streams the image is stale as soon as the device runs, so it is withdrawn until it is
 * fetched. */
void interpreter_publish(struct interpreter *in, const struct standing *standing)
{
    const struct program *p = in->program;
    struct share *shares = xcalloc(p->parameter_count, sizeof *shares);
    for (size_t i = 0; i < p->parameter_count; i++) {
        const struct parameter *parameter = &p->parameters[i];
        const struct piece *gradient = &parameter->gradient;
        shares[i] = (struct share){
            .tensor = parameter->tensor,
            .box = parameter->box,
            .master = place_of(p, parameter->master),
            .first = place_of(p, parameter->first),
            .second = place_of(p, parameter->second),
            .gradient = place_of(p, gradient->buffer) + (uint64_t)gradient->offset * ELEMENT_BYTES,
        };
    }
    holding_describe(in->holding, shares, in->config.epoch);
    holding_publish(in->holding, standing);
    in->published = true;
    if (in->streams)
        holding_withdraw(in->holding);
    free(shares);
}

const struct standing *interpreter_standing(const struct interpreter *in)
{
    return holding_standing(in->holding);
}

/* Fetch the state from the device and offer it again; false if the device is lost, and the state
 * with it. */
static bool bring(struct interpreter *in)
{
    struct error ignored;
    if (!in->streams)
        return true;
    streams_enter(in->streams, QUEUE_COMPUTE);
    arena_fetch(in->arena, REGION_STATE, 0, in->program->bytes[REGION_STATE]);
    int rc = arena_finish(in->arena, &ignored);
    streams_leave(in->streams);
    if (rc == 0)
        holding_republish(in->holding);
    return rc == 0;
}

struct holding *interpreter_leave(struct interpreter *in)
{
    struct holding *holding = in->holding;
    if (!holding || !in->published || !bring(in))
        return NULL;
    in->holding = NULL;
    return holding;
}

void interpreter_arm(struct interpreter *in)
{
    if (in->holding)
        holding_arm(in->holding);
}

void interpreter_begin_update(struct interpreter *in, const float *metrics)
{
    if (in->holding)
        holding_apply(in->holding, metrics);
}

void interpreter_end_update(struct interpreter *in)
{
    if (in->holding)
        holding_applied(in->holding);
}
