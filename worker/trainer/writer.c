/* writer.c - a one-rank program of the model, of which evaluation is run for each token. */
#include "worker/trainer/writer.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/plan/plan.h"
#include "common/program/lower.h"
#include "worker/kernels/call.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STREAM 7 /* of the random numbers that belong to a seed */

struct writer {
    const struct graph *graph;
    struct plan *plan;
    struct program *program;
    struct interpreter *interpreter;
    struct feed feed;
    bool whole; /* the device evaluates whole contexts only */
    /* The context: `used` of `seq` tokens, the first `known` of which are evaluated. */
    int32_t *tokens;
    int64_t seq, used, known;
    double *weights; /* of the tokens that may come next */
};

/* Inputs are the context; targets are absent (-1), so that no loss is computed from them. */
static void writer_fill(const void *data, enum program_kind kind, uint64_t first,
                        const struct tensor *tensor, const struct box *box, int32_t *out)
{
    const struct writer *writer = data;
    (void)kind;
    (void)first;
    for (int64_t place = box->low[1]; place < box->high[1]; place++)
        *out++ = tensor->targets || place >= writer->used ? (tensor->targets ? -1 : 0)
                                                          : writer->tokens[place];
}

static double no_targets(const void *data, enum program_kind kind, uint64_t first, uint64_t samples)
{
    (void)data;
    (void)kind;
    (void)first;
    (void)samples;
    return 1;
}

static int find_logits(const struct graph *graph)
{
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation->is_loss)
            return graph->nodes[n].operands[0];
    return -1;
}

int writer_prepare(const struct graph *graph, const struct device *device, struct writer **out,
                   struct error *err)
{
    if (graph_positions(graph) < 2)
        return error_set(err, -EINVAL,
                         "it is no language model: these have contexts of two tokens or more");
    int rc = interpreter_extends(graph, err);
    if (rc < 0)
        return error_prefix(err, rc, "it is no language model");
    const struct tensor *logits = &graph->tensors[find_logits(graph)];
    struct writer *writer = xcalloc(1, sizeof *writer);
    writer->graph = graph;
    writer->whole = device->accelerator != NULL;
    writer->feed = (struct feed){writer, writer_fill, no_targets};
    writer->seq = graph_positions(graph);
    writer->tokens = xcalloc((size_t)writer->seq, sizeof *writer->tokens);
    writer->weights = xcalloc((size_t)tensor_size(logits, 'v'), sizeof *writer->weights);
    writer->plan = plan_create(1, (int)graph->block_count);
    writer->plan->stages[0].block_count = writer->plan->block_count;
    const struct interpreter_config config = {.device = device, .feed = &writer->feed};
    rc = lower(graph, writer->plan, 0, &writer->program, err);
    if (rc == 0)
        rc = interpreter_prepare(writer->program, &config, &writer->interpreter, err);
    if (rc < 0)
        writer_destroy(writer);
    else
        *out = writer;
    return rc;
}

void writer_destroy(struct writer *writer)
{
    if (!writer)
        return;
    interpreter_release(writer->interpreter);
    program_destroy(writer->program);
    plan_destroy(writer->plan);
    free(writer->tokens);
    free(writer->weights);
    free(writer);
}

struct interpreter *writer_interpreter(struct writer *writer)
{
    return writer->interpreter;
}

static int likeliest(const struct view *logits, int64_t first, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (get(logits, first + i) > get(logits, first + best))
            best = i;
    return best;
}

/* Draw one of the first `count` tokens, each with probability proportional to exp(logit /
 * temperature). Logits start at `first`; uniform is in [0, 1). Subtracting the largest logit keeps
 * exp from overflowing. */
static int writer_draw(double *weights, const struct view *logits, int64_t first, int count,
                       double temperature, double uniform)
{
    double sum = 0, most = get(logits, first + likeliest(logits, first, count));
    for (int i = 0; i < count; i++)
        sum += weights[i] = exp((get(logits, first + i) - most) / temperature);
    double left = uniform * sum;
    for (int i = 0; i < count - 1; i++)
        if ((left -= weights[i]) < 0)
            return i;
    return count - 1;
}

/* When the context is full, its older half is dropped. */
static void writer_append(struct writer *writer, int32_t token)
{
    if (writer->used == writer->seq) {
        writer->used /= 2;
        writer->known = 0;
        memmove(writer->tokens, writer->tokens + writer->seq - writer->used,
                (size_t)writer->used * sizeof *writer->tokens);
    }
    writer->tokens[writer->used++] = token;
}

static int writer_append_all(void *data, const int32_t *ids, size_t count, struct error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++)
        writer_append(data, ids[i]);
    return 0;
}

static int writer_append_text(struct writer *writer, const struct tokenizer *tokenizer,
                              const void *text, size_t size, struct error *err)
{
    struct encoder *encoder = encoder_create(tokenizer, writer_append_all, writer);
    int rc = encoder_add(encoder, text, size, err);
    if (rc == 0)
        rc = encoder_end(encoder, err);
    encoder_destroy(encoder);
    return rc;
}

/* A text begins with what the tokenizer puts there; without a prompt it otherwise follows the end
 * of another, or a newline where texts have no end. */
static int read_prompt(struct writer *writer, const struct writing *writing, struct error *err)
{
    const int32_t end = tokenizer_end(writing->tokenizer);
    size_t count;
    const int32_t *before = tokenizer_before(writing->tokenizer, &count);
    writer->used = writer->known = 0;
    writer_append_all(writer, before, count, err);
    if (writing->prompt_size || count)
        return writer_append_text(writer, writing->tokenizer, writing->prompt, writing->prompt_size,
                                  err);
    return end >= 0 ? writer_append_all(writer, &end, 1, err)
                    : writer_append_text(writer, writing->tokenizer, "\n", 1, err);
}

/* Choose the next token from `count` of them; `number` is how many have been chosen before. */
static int writer_choose(struct writer *writer, const struct writing *writing,
                         const struct view *logits, int count, uint64_t number)
{
    int64_t first = (writer->used - 1) * box_length(&logits->box, 2);
    return writing->temperature > 0
               ? writer_draw(writer->weights, logits, first, count, writing->temperature,
                             random_uniform(writing->seed, STREAM, number))
               : likeliest(logits, first, count);
}

/* Compute the logits of the last token. */
static int writer_evaluate(struct writer *writer, int logits, struct error *err)
{
    struct step_result ignored;
    int rc = writer->whole
                 ? interpreter_run(writer->interpreter, PROGRAM_EVALUATE, 0, &ignored, err)
                 : interpreter_extend(writer->interpreter, writer->known, writer->used, err);
    if (rc == 0 && writer->whole)
        rc = interpreter_fetch(writer->interpreter, logits, err);
    writer->known = writer->used;
    return rc;
}

/* Some tokens may stand for no bytes, but a model may not go on with them for ever. */
int writer_write(struct writer *writer, const struct writing *writing, struct error *err)
{
    struct view logits;
    int buffer = program_find_output(writer->program, find_logits(writer->graph), &logits.box);
    int count = (int)tokenizer_size(writing->tokenizer);
    size_t written = 0, size = 0;
    int rc = read_prompt(writer, writing, err);
    assert(count <= box_length(&logits.box, 2));
    logits.element = element_of_size(writer->graph->element_bytes);
    logits.data = interpreter_buffer(writer->interpreter, buffer);
    for (uint64_t i = 0; i < writing->bytes && written < writing->bytes && rc == 0; i++) {
        rc = writer_evaluate(writer, buffer, err);
        if (rc < 0)
            break;
        int token = writer_choose(writer, writing, &logits, count, i);
        if (token == tokenizer_end(writing->tokenizer))
            break;
        writer_append(writer, token);
        const char *text = tokenizer_text(writing->tokenizer, token, &size);
        if (!text)
            continue;
        written += size;
        rc = writing->wrote_cb(writing->data, text, size);
    }
    return rc;
}
