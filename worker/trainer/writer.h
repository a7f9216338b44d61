/* writer.h - continues a text with a byte-level language model, on one rank.
 *
 * Every byte takes one forward pass over the whole context, without a cache of keys and values:
 * simple, and fast enough for models that work on bytes. */
#ifndef WORKER_TRAINER_WRITER_H
#define WORKER_TRAINER_WRITER_H

#include "worker/interpreter/interpreter.h"

struct writer;

/* Prepare the whole model on the device. Its weights are still to be filled in: they are the
 * masters of writer_interpreter(), to be followed by interpreter_store_state. The graph is lent.
 * *out is the caller's. -EINVAL: not a byte-level language model; otherwise as
 * interpreter_prepare. */
int writer_prepare(const struct graph *graph, const struct device *device, struct writer **out,
                   struct error *err);
/* Accepts NULL. */
void writer_destroy(struct writer *writer);
struct interpreter *writer_interpreter(struct writer *writer);

struct writing {
    const void *prompt; /* if it is longer than a context, only its end counts */
    size_t prompt_size; /* 0: the text starts as if after a newline, or after the end of a text */
    size_t bytes;       /* how many to write */
    double temperature; /* 0: always the likeliest byte */
    uint64_t seed;
    bool ends; /* the token after the last byte ends the text; it is not written */
    /* Called with each byte, in order. A negative return value ends the writing and is returned. */
    int (*wrote_cb)(void *data, uint8_t byte);
    void *data;
};

/* Write `bytes` bytes after the prompt, or fewer if the text ends. Errors of the interpreter, or
 * what wrote_cb returned. */
int writer_write(struct writer *writer, const struct writing *writing, struct error *err);

#endif
