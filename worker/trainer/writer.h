/* writer.h - a language model of bytes on one rank, which goes on with a text.
 *
 * Every byte is one pass of the whole context: plain, and for models that bytes are enough for. */
#ifndef WORKER_TRAINER_WRITER_H
#define WORKER_TRAINER_WRITER_H

#include "worker/interpreter/interpreter.h"

struct writer;

/* The whole model in memory, on the device, its weights still to be filled in: they are the
 * masters of writer_interpreter(), to be stored. The graph is lent. -EINVAL: it is no language
 * model of bytes; else as interpreter_prepare. *out is yours. */
int writer_prepare(const struct graph *graph, const struct device *device, struct writer **out,
                   struct error *err);
/* Accepts NULL. */
void writer_destroy(struct writer *writer);
struct interpreter *writer_interpreter(struct writer *writer);

struct writing {
    const void *prompt; /* of which it reads the end, where it is longer than a context */
    size_t prompt_size; /* 0: as if it began behind an empty line */
    size_t bytes;       /* to be written */
    double temperature; /* 0: always what is likeliest */
    uint64_t seed;
    /* Each byte, in order; what it returns below 0 ends it. */
    int (*wrote_cb)(void *data, uint8_t byte);
    void *data;
};

int writer_write(struct writer *writer, const struct writing *writing, struct error *err);

#endif
