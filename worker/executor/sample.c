/* sample.c - from a plan over many ranks to a plan of one, and one byte after the other.
 *
 * Of every slice the rank that counts it in the global norm sends it to rank 0, which puts the
 * wholes together in the arena of a one-rank program. That lies beside what is trained: rank 0 says
 * first whether there is memory for it. */
#include "worker/executor/sample.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/program/lower.h"
#include "worker/kernels/call.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEMPERATURE 0.8
#define TAG_READY 0x80000000u /* above those of programs */
#define TAG_FIRST (TAG_READY + 1)

static int send(const struct trainer_config *config, int to, uint32_t tag, const float *data,
                size_t count, struct error *err)
{
    struct fabric_request *request;
    int rc =
        config->collectives->send(config->fabric, to, tag, ELEMENT_F32, data, count, &request, err);
    return rc == 0 ? config->collectives->wait(config->fabric, request, err) : rc;
}

static int tell_ready(const struct trainer_config *config, bool ready, struct error *err)
{
    const float word = ready ? 1 : 0;
    int rc = 0;
    for (int rank = 1; rank < plan_ranks(config->plan) && rc == 0; rank++)
        rc = send(config, rank, TAG_READY, &word, 1, err);
    return rc;
}

/* Where rank 0 is ready for them. */
static int send_slices(const struct trainer_config *config, struct interpreter *in,
                       struct error *err)
{
    const struct program *program = interpreter_program(in);
    float ready = 0;
    int rc =
        config->collectives->receive(config->fabric, 0, TAG_READY, ELEMENT_F32, &ready, 1, err);
    for (size_t i = 0; i < program->parameter_count && ready > 0 && rc == 0; i++) {
        const struct parameter *parameter = &program->parameters[i];
        if (parameter->counted && box_count(&parameter->box) > 0)
            rc = send(config, 0, TAG_FIRST + (uint32_t)parameter->tensor,
                      interpreter_buffer(in, parameter->master), (size_t)box_count(&parameter->box),
                      err);
    }
    return rc;
}

/* A rank's slices into the wholes, which are the masters of the one-rank program. */
static int take_slices(const struct trainer_config *config, const struct program *from,
                       struct interpreter *own, struct interpreter *whole, struct error *err)
{
    const struct program *to = interpreter_program(whole);
    int rc = 0;
    for (size_t i = 0; i < from->parameter_count && rc == 0; i++) {
        const struct parameter *parameter = &from->parameters[i];
        size_t count = (size_t)box_count(&parameter->box), j = 0;
        if (!parameter->counted || count == 0)
            continue;
        float *received = NULL;
        struct view source = {.box = parameter->box};
        if (from->rank == config->rank) {
            source.data = interpreter_buffer(own, parameter->master);
        } else {
            source.data = received = xcalloc(count, sizeof *received);
            rc = config->collectives->receive(config->fabric, from->rank,
                                              TAG_FIRST + (uint32_t)parameter->tensor, ELEMENT_F32,
                                              received, count, err);
        }
        while (to->parameters[j].tensor != parameter->tensor)
            j++;
        struct view target = {.data = interpreter_buffer(whole, to->parameters[j].master),
                              .box = to->parameters[j].box};
        if (rc == 0)
            device_cpu.copy(&target, &source, &parameter->box);
        free(received);
    }
    return rc;
}

static int take_all(const struct trainer_config *config, struct interpreter *own,
                    struct interpreter *whole, struct error *err)
{
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(config->plan) && rc == 0; rank++) {
        struct program *program = NULL;
        rc = lower(config->graph, config->plan, rank, &program, err);
        if (rc == 0)
            rc = take_slices(config, program, own, whole, err);
        program_destroy(program);
    }
    return rc;
}

/* The context of the generation: what the model reads. */
struct context {
    int32_t *tokens;
    int64_t seq, used;
};

static void fill(const void *data, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out)
{
    const struct context *context = data;
    (void)kind;
    (void)first;
    for (int64_t place = box->low[1]; place < box->high[1]; place++)
        *out++ = targets || place >= context->used ? (targets ? -1 : 0) : context->tokens[place];
}

static double no_targets(const void *data, enum program_kind kind, uint64_t first, uint64_t samples)
{
    (void)data;
    (void)kind;
    (void)first;
    (void)samples;
    return 1;
}

/* One of the bytes 0..255, each with probability exp(logit / temperature), normalised; logits
 * from `first` on. */
static int draw(const struct view *logits, int64_t first, uint64_t seed, uint64_t index)
{
    double weights[256], sum = 0, most = get(logits, first);
    for (int i = 1; i < 256; i++)
        most = fmax(most, get(logits, first + i));
    for (int i = 0; i < 256; i++)
        sum += weights[i] = exp((get(logits, first + i) - most) / TEMPERATURE);
    double left = random_uniform(seed, 7, index) * sum;
    for (int i = 0; i < 255; i++)
        if ((left -= weights[i]) < 0)
            return i;
    return 255;
}

static int find_logits(const struct graph *graph)
{
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation->is_loss)
            return graph->nodes[n].operands[0];
    return -1;
}

/* Begins with an empty line. A context that is full moves on by half its length. */
static int generate(const struct trainer_config *config, struct interpreter *whole,
                    struct context *context, struct error *err)
{
    size_t size = (size_t)config->job->eval.sample;
    uint8_t *text = xcalloc(size, 1);
    struct view logits;
    int buffer =
        program_find_output(interpreter_program(whole), find_logits(config->graph), &logits.box);
    int64_t vocab = box_length(&logits.box, 2);
    logits.element = element_of_size(config->graph->element_bytes);
    logits.data = interpreter_buffer(whole, buffer);
    int rc = 0;
    context->tokens[0] = '\n';
    context->used = 1;
    for (size_t i = 0; i < size && rc == 0; i++) {
        struct step_result result;
        rc = interpreter_run(whole, PROGRAM_EVALUATE, 0, &result, err);
        if (rc == 0)
            rc = interpreter_fetch(whole, buffer, err);
        if (rc < 0)
            break;
        text[i] = (uint8_t)draw(&logits, (context->used - 1) * vocab,
                                (uint64_t)config->job->train.seed, i);
        if (context->used == context->seq) {
            context->used /= 2;
            memmove(context->tokens, context->tokens + context->seq - context->used,
                    (size_t)context->used * sizeof *context->tokens);
        }
        context->tokens[context->used++] = text[i];
    }
    if (rc == 0 && config->reporter->sample)
        config->reporter->sample(config->reporter->context, config->rank,
                                 (uint64_t)config->job->train.steps, text, size);
    free(text);
    return rc;
}

static int gather_and_generate(const struct trainer_config *config, struct interpreter *in,
                               struct interpreter *whole, struct context *context,
                               struct error *err)
{
    int rc = take_all(config, in, whole, err);
    if (rc == 0)
        rc = interpreter_store_state(whole, err);
    return rc == 0 ? generate(config, whole, context, err) : rc;
}

/* A one-rank program in memory, on the device. */
static int prepare(const struct trainer_config *config, const struct plan *alone,
                   const struct feed *feed, struct program **program, struct interpreter **whole,
                   struct error *err)
{
    const struct interpreter_config prepare = {.device = config->device, .feed = feed};
    int rc = lower(config->graph, alone, 0, program, err);
    return rc == 0 ? interpreter_prepare(*program, &prepare, whole, err) : rc;
}

/* A training that has ended well does not fail for want of memory for its sample. */
static int try(const struct trainer_config *config, struct interpreter *in,
               const struct plan *alone, struct error *err)
{
    struct program *program = NULL;
    struct interpreter *whole = NULL;
    struct context context = {.seq = sizes_get(&config->graph->sizes, 's')};
    context.tokens = xcalloc((size_t)context.seq, sizeof *context.tokens);
    const struct feed feed = {&context, fill, no_targets};
    struct error why = {""};
    int prepared = prepare(config, alone, &feed, &program, &whole, &why);
    int rc = tell_ready(config, prepared == 0, err);
    if (prepared == -ENOMEM || prepared == -ENOBUFS)
        log_line(LOG_WARN, "no sample: the whole model has no room beside what was trained: %s",
                 why.text);
    else if (prepared < 0)
        rc = error_set(err, prepared, "%s", why.text);
    else if (rc == 0)
        rc = gather_and_generate(config, in, whole, &context, err);
    interpreter_release(whole);
    program_destroy(program);
    free(context.tokens);
    return rc;
}

int sample_run(const struct trainer_config *config, struct interpreter *in, struct error *err)
{
    if (sizes_get(&config->graph->sizes, 'v') < 256 || config->job->data.text.count == 0)
        return 0;
    int rc = interpreter_fetch_state(in, err);
    if (rc < 0)
        return rc;
    if (config->rank != 0)
        return send_slices(config, in, err);
    struct plan *alone = plan_create(1, (int)config->graph->block_count);
    alone->stages[0].block_count = alone->block_count;
    rc = try(config, in, alone, err);
    plan_destroy(alone);
    return rc < 0 ? error_prefix(err, rc, "sample") : 0;
}
