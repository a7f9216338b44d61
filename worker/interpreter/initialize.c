/* initialize.c - fresh parameters. They are the same under every plan, because an element's value
 * depends only on the seed, its tensor and its place in the whole tensor.
 *
 * An element takes about 100 ns to draw, so a billion of them take minutes: large parameters are
 * divided among as many threads as this one may use processors. */
#include "common/base/random.h"
#include "worker/interpreter/interpreter.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define THREADS_MAX 64
/* Elements for a thread: drawing these takes much longer than starting it. */
#define EACH_MIN 65536

/* A range of the elements of a tensor that lie in a box. */
struct drawing {
    const struct graph *graph;
    int tensor;
    const struct box *box;
    uint64_t seed;
    float *out; /* of the whole box */
    int64_t low, high;
    pthread_t thread;
};

/* Where element `index` of the box is in the whole tensor. */
static void find_place(const struct box *box, int64_t index, int64_t at[DIMS_MAX])
{
    for (int dim = box->dims - 1; dim >= 0; dim--) {
        at[dim] = box->low[dim] + index % box_length(box, dim);
        index /= box_length(box, dim);
    }
}

static void *initialize_part(void *context)
{
    const struct drawing *drawing = context;
    const struct box *box = drawing->box;
    const struct tensor *t = &drawing->graph->tensors[drawing->tensor];
    const struct box whole = tensor_box(t, 0);
    int64_t at[DIMS_MAX] = {0};
    find_place(box, drawing->low, at);
    for (int64_t i = drawing->low; i < drawing->high; i++) {
        float *out = &drawing->out[i];
        uint64_t index = 0;
        for (int dim = 0; dim < box->dims; dim++)
            index = index * (uint64_t)box_length(&whole, dim) + (uint64_t)at[dim];
        *out = t->initializer.mean;
        if (t->initializer.deviation > 0)
            *out += t->initializer.deviation *
                    (float)random_normal(drawing->seed, (uint64_t)drawing->tensor, index);
        for (int dim = box->dims - 1; dim >= 0 && ++at[dim] == box->high[dim]; dim--)
            at[dim] = box->low[dim];
    }
    return NULL;
}

static int64_t count_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Draw all elements of the box. What no thread can be started for is drawn by this one. */
static void draw_all(const struct drawing *whole)
{
    struct drawing parts[THREADS_MAX];
    int64_t count = box_count(whole->box), threads = count / EACH_MIN + 1;
    int64_t processors = threads > 1 ? count_processors() : 1;
    bool started[THREADS_MAX] = {false};
    threads = threads < processors ? threads : processors;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    for (int64_t i = threads - 1; i >= 0; i--) {
        parts[i] = *whole;
        parts[i].low = count * i / threads;
        parts[i].high = count * (i + 1) / threads;
        started[i] =
            i > 0 && pthread_create(&parts[i].thread, NULL, initialize_part, &parts[i]) == 0;
        if (!started[i] && parts[i].low < parts[i].high)
            initialize_part(&parts[i]);
    }
    for (int64_t i = 1; i < threads; i++)
        if (started[i])
            pthread_join(parts[i].thread, NULL);
}

void interpreter_initialize(struct interpreter *interpreter, uint64_t seed)
{
    const struct program *program = interpreter_program(interpreter);
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        size_t bytes = (size_t)box_count(&parameter->box) * ELEMENT_BYTES;
        draw_all(&(struct drawing){.graph = program->graph,
                                   .tensor = parameter->tensor,
                                   .box = &parameter->box,
                                   .seed = seed,
                                   .out = interpreter_buffer(interpreter, parameter->master)});
        memset(interpreter_buffer(interpreter, parameter->first), 0, bytes);
        memset(interpreter_buffer(interpreter, parameter->second), 0, bytes);
    }
}
