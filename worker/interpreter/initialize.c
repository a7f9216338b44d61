/* initialize.c - fresh parameters. They are the same under every plan, because an element's value
 * depends only on the seed, its tensor and its place in the whole tensor. */
#include "common/base/random.h"
#include "worker/interpreter/interpreter.h"

#include <string.h>

/* Fill out with the elements of a tensor that lie in box. */
static void draw(const struct graph *graph, int tensor, const struct box *box, uint64_t seed,
                 float *out)
{
    const struct tensor *t = &graph->tensors[tensor];
    struct sizes sizes = graph_sizes(graph, 1);
    struct box whole = box_whole(t->dims, &sizes);
    int64_t at[DIMS_MAX], count = box_count(box);
    memcpy(at, box->low, sizeof at);
    for (int64_t i = 0; i < count; i++) {
        uint64_t index = 0;
        for (int dim = 0; dim < box->dims; dim++)
            index = index * (uint64_t)box_length(&whole, dim) + (uint64_t)at[dim];
        out[i] = t->initializer.mean;
        if (t->initializer.deviation > 0)
            out[i] +=
                t->initializer.deviation * (float)random_normal(seed, (uint64_t)tensor, index);
        for (int dim = box->dims - 1; dim >= 0 && ++at[dim] == box->high[dim]; dim--)
            at[dim] = box->low[dim];
    }
}

void interpreter_initialize(struct interpreter *interpreter, uint64_t seed)
{
    const struct program *program = interpreter_program(interpreter);
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        size_t bytes = (size_t)box_count(&parameter->box) * ELEMENT_BYTES;
        draw(program->graph, parameter->tensor, &parameter->box, seed,
             interpreter_buffer(interpreter, parameter->master));
        memset(interpreter_buffer(interpreter, parameter->first), 0, bytes);
        memset(interpreter_buffer(interpreter, parameter->second), 0, bytes);
    }
}
