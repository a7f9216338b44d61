/* writer.h - continues a text with a language model, on one rank.
 *
 * The first token takes a forward pass over the prompt, and each further one a pass over one
 * position: keys and values of the others are known. When a context is full, its newer half is
 * computed again, as it moves to other positions. On a device with memory of its own every token
 * takes a pass over a whole context.
 *
 * At the end of training the model is on many ranks: then rank 0 gathers it (sample.c). */
#ifndef WORKER_TRAINER_WRITER_H
#define WORKER_TRAINER_WRITER_H

#include "worker/interpreter/interpreter.h"
#include "worker/tokenizer/tokenizer.h"

struct writer;
struct trainer_config;

/* Prepare the whole model on the device. Its weights are still to be filled in: they are the
 * masters of writer_interpreter(), to be followed by interpreter_store_state. The graph is lent.
 * *out is the caller's. -EINVAL: contexts are too short; otherwise as interpreter_prepare. */
int writer_prepare(const struct graph *graph, const struct device *device, struct writer **out,
                   struct error *err);
/* Accepts NULL. */
void writer_destroy(struct writer *writer);
struct interpreter *writer_interpreter(struct writer *writer);

struct writing {
    const struct tokenizer *tokenizer; /* of no more tokens than the model has */
    const void *prompt;                /* if it is longer than a context, only its end counts */
    size_t prompt_size; /* 0: a text begins, after the end of another or after a newline */
    size_t bytes;       /* how many to write */
    double temperature; /* 0: always the likeliest token */
    uint64_t seed;
    /* Called with the bytes of each token, in order: a character may come in several calls. A
     * negative return value ends the writing and is returned. */
    int (*wrote_cb)(void *data, const char *bytes, size_t size);
    void *data;
};

/* Write after the prompt until there are `bytes` bytes, the last token being whole, or until the
 * text ends. Errors of the interpreter and the tokenizer, or what wrote_cb returned. */
int writer_write(struct writer *writer, const struct writing *writing, struct error *err);

/* Generate eval.sample bytes with the model that was trained, and report them. Collective. Does
 * nothing if nobody knows what a token stands for (config->tokenizer is NULL). If rank 0 lacks the
 * memory for a whole model it logs that, and the call succeeds. */
int writer_sample(const struct trainer_config *config, struct interpreter *in, struct error *err);

#endif
