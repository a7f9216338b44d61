/* state.c - parameters as slices, and back. */
#include "worker/checkpoint/state.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

int state_buffer_of(const struct parameter *parameter, int part)
{
    const int buffers[STATE_PARTS] = {
        [STATE_WEIGHT] = parameter->master,
        [STATE_FIRST] = parameter->first,
        [STATE_SECOND] = parameter->second,
    };
    return buffers[part];
}

struct state_slice *state_slices(const struct program *program, state_buffer_cb *buffer,
                                 void *context)
{
    struct state_slice *slices = xcalloc(program->parameter_count, sizeof *slices);
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        slices[i] = (struct state_slice){.tensor = parameter->tensor, .box = parameter->box};
        for (int part = 0; part < STATE_PARTS; part++)
            slices[i].parts[part] = buffer(context, state_buffer_of(parameter, part));
    }
    return slices;
}

const struct state_slice *state_slices_find(const struct state_slice *slices, int tensor)
{
    while (slices->tensor != tensor)
        slices++;
    return slices;
}

void state_list_init(struct state_list *slices, const struct program *program)
{
    size_t room = program->parameter_count * STATE_PARTS;
    *slices = (struct state_list){xcalloc(room, sizeof *slices->slices),
                                  xcalloc(room, sizeof *slices->buffers), 0, 0};
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        uint64_t bytes = (uint64_t)box_count(&parameter->box) * ELEMENT_BYTES;
        for (int part = 0; part < STATE_PARTS && parameter->counted && bytes; part++) {
            slices->buffers[slices->count] = state_buffer_of(parameter, part);
            slices->slices[slices->count++] = (struct shard_slice){
                .tensor = program->graph->tensors[parameter->tensor].name,
                .part = (enum state_part)part,
                .box = parameter->box,
                .offset = slices->bytes,
                .bytes = bytes,
            };
            slices->bytes += bytes;
        }
    }
}

void state_list_finish(struct state_list *slices)
{
    free(slices->slices);
    free(slices->buffers);
    *slices = (struct state_list){0};
}

void state_copy(const struct state_list *slices, state_buffer_cb *buffer, void *context, void *out)
{
    for (size_t i = 0; i < slices->count; i++)
        memcpy((char *)out + slices->slices[i].offset, buffer(context, slices->buffers[i]),
               slices->slices[i].bytes);
}

int state_load(struct checkpoint *checkpoint, const struct program *program, int parts,
               state_buffer_cb *buffer, void *context, struct error *err)
{
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        const char *tensor = program->graph->tensors[parameter->tensor].name;
        for (int part = 0; part < parts; part++) {
            int rc = checkpoint_load(checkpoint, tensor, (enum state_part)part, &parameter->box,
                                     buffer(context, state_buffer_of(parameter, part)), err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}
