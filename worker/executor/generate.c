/* generate.c - writes text with the model of a checkpoint, to stdout as it comes. */
#include "worker/executor/modes.h"

#include "common/base/text.h"
#include "common/config/job.h"
#include "common/models/model.h"
#include "worker/checkpoint/state.h"
#include "worker/kernels/devices.h"
#include "worker/tokenizer/byte_buffer.h"
#include "worker/trainer/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *buffer_of(void *in, int buffer)
{
    return interpreter_buffer(in, buffer);
}

static int fill_weights(struct writer *writer, struct checkpoint *checkpoint, struct error *err)
{
    struct interpreter *in = writer_interpreter(writer);
    int rc = state_load(checkpoint, interpreter_program(in), STATE_WEIGHT + 1, buffer_of, in, err);
    return rc == 0 ? interpreter_store_state(in, err) : rc;
}

/* What goes to stdout: as it is, unless that is a terminal. */
struct screen {
    bool terminal;
    struct byte_buffer pending; /* a character that is not complete */
};

/* A model may emit any byte; control characters must not reach a terminal, nor half a character. */
static int print(void *data, const char *bytes, size_t size)
{
    struct screen *screen = data;
    byte_buffer_add(&screen->pending, bytes, size);
    size_t ready = screen->pending.size;
    if (screen->terminal) {
        ready -= text_cut(screen->pending.bytes, ready);
        char *clean = text_clean(screen->pending.bytes, ready);
        fputs(clean, stdout);
        free(clean);
    } else {
        fwrite(screen->pending.bytes, 1, ready, stdout);
    }
    byte_buffer_drop(&screen->pending, ready);
    return fflush(stdout) == 0 ? 0 : -errno;
}

static int write_text(struct writer *writer, const struct executor_options *options,
                      const struct tokenizer *tokenizer, struct error *err)
{
    struct screen screen = {.terminal = isatty(STDOUT_FILENO)};
    const struct writing writing = {.tokenizer = tokenizer,
                                    .prompt = options->prompt,
                                    .prompt_size = strlen(options->prompt),
                                    .bytes = (size_t)options->bytes,
                                    .temperature = options->temperature,
                                    .seed = (uint64_t)options->seed,
                                    .wrote_cb = print,
                                    .data = &screen};
    fputs(options->prompt, stdout);
    int rc = writer_write(writer, &writing, err);
    for (; screen.pending.size > 0; byte_buffer_drop(&screen.pending, 1))
        putchar('?'); /* the text ends within a character */
    byte_buffer_finish(&screen.pending);
    if (rc == -EPIPE) /* the reader has closed its end */
        return 0;
    putchar('\n');
    if (rc == 0 && fflush(stdout) != 0)
        rc = -errno;
    return rc < 0 && ferror(stdout) ? error_set(err, rc, "write to stdout: %s", strerror(-rc)) : rc;
}

static int open_tokenizer(const struct job_config *job, struct tokenizer **out, struct error *err)
{
    int rc = tokenizer_open_job(job, out, err);
    if (rc < 0 || *out)
        return rc;
    return error_set(err, -EINVAL,
                     "nobody knows what the tokens of '%s' stand for, so its model cannot write: "
                     "data.tokenizer would be bytes or the path of a tokenizer.json",
                     job->name);
}

int executor_generate(const struct executor_options *options, struct error *err)
{
    const struct device *device;
    struct job_config *job = NULL;
    struct graph *graph = NULL;
    struct checkpoint *checkpoint = NULL;
    struct writer *writer = NULL;
    struct tokenizer *tokenizer = NULL;
    int rc = device_open(options->device ? options->device : "cpu", &device, err);
    if (rc == 0)
        rc = job_config_load(options->job, &job, err);
    if (rc == 0)
        rc = open_tokenizer(job, &tokenizer, err);
    if (rc == 0)
        rc = model_build(&job->model, job->train.dtype, &graph, err);
    if (rc == 0)
        rc = checkpoint_open(options->generate, &checkpoint, err);
    if (rc == 0)
        rc = manifest_compare(checkpoint_manifest(checkpoint), graph, err);
    if (rc == 0)
        rc = writer_prepare(graph, device, &writer, err);
    if (rc == 0)
        rc = fill_weights(writer, checkpoint, err);
    if (rc == 0)
        rc = write_text(writer, options, tokenizer, err);
    tokenizer_close(tokenizer);
    writer_destroy(writer);
    checkpoint_close(checkpoint);
    graph_destroy(graph);
    job_config_destroy(job);
    return rc;
}
