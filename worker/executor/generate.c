/* generate.c - writes text with the model of a checkpoint, to stdout as it comes. */
#include "worker/executor/modes.h"

#include "common/config/job.h"
#include "common/models/model.h"
#include "worker/checkpoint/read.h"
#include "worker/kernels/modules.h"
#include "worker/trainer/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fill_weights(struct writer *writer, const struct graph *graph,
                        struct checkpoint *checkpoint, struct error *err)
{
    struct interpreter *in = writer_interpreter(writer);
    const struct program *program = interpreter_program(in);
    int rc = 0;
    for (size_t i = 0; i < program->parameter_count && rc == 0; i++) {
        const struct parameter *parameter = &program->parameters[i];
        rc = checkpoint_load(checkpoint, graph->tensors[parameter->tensor].name, CHECKPOINT_WEIGHT,
                             &parameter->box, interpreter_buffer(in, parameter->master), err);
    }
    return rc == 0 ? interpreter_store_state(in, err) : rc;
}

/* A model may emit any byte; control characters must not reach a terminal. */
static int print(void *data, uint8_t byte)
{
    const bool *terminal = data;
    bool control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
    putchar(*terminal && control ? '?' : byte);
    return fflush(stdout) == 0 ? 0 : -errno;
}

static int write_text(struct writer *writer, const struct executor_options *options, bool ends,
                      struct error *err)
{
    bool terminal = isatty(STDOUT_FILENO);
    const struct writing writing = {.prompt = options->prompt,
                                    .prompt_size = strlen(options->prompt),
                                    .bytes = (size_t)options->bytes,
                                    .temperature = options->temperature,
                                    .seed = options->seed,
                                    .ends = ends,
                                    .wrote_cb = print,
                                    .data = &terminal};
    fputs(options->prompt, stdout);
    int rc = writer_write(writer, &writing, err);
    if (rc == -EPIPE) /* the reader has closed its end */
        return 0;
    putchar('\n');
    if (rc == 0 && fflush(stdout) != 0)
        rc = -errno;
    return rc < 0 && ferror(stdout) ? error_set(err, rc, "write to stdout: %s", strerror(-rc)) : rc;
}

static int check(const struct job_config *job, struct error *err)
{
    if (job->data.tokenizer == JOB_BYTES)
        return 0;
    return error_set(
        err, -EINVAL,
        "only models of bytes write here, of data.text or data.tokenizer: bytes: what '%s' was "
        "trained on has another tokenizer or is no text; 'gimbal checkpoint export' writes it for "
        "transformers",
        job->name);
}

int executor_generate(const struct executor_options *options, struct error *err)
{
    const struct device *device;
    struct job_config *job = NULL;
    struct graph *graph = NULL;
    struct checkpoint *checkpoint = NULL;
    struct writer *writer = NULL;
    int rc = device_open(options->device ? options->device : "cpu", &device, err);
    if (rc == 0)
        rc = job_config_load(options->job, &job, err);
    if (rc == 0)
        rc = check(job, err);
    if (rc == 0) {
        struct model_config config = model_config_of(job);
        rc = model_build(&config, &graph, err);
    }
    if (rc == 0)
        rc = checkpoint_open(options->generate, &checkpoint, err);
    if (rc == 0)
        rc = manifest_compare(checkpoint_manifest(checkpoint), graph, err);
    if (rc == 0)
        rc = writer_prepare(graph, device, &writer, err);
    if (rc == 0)
        rc = fill_weights(writer, graph, checkpoint, err);
    if (rc == 0)
        rc = write_text(writer, options, job_ends_texts(job), err);
    writer_destroy(writer);
    checkpoint_close(checkpoint);
    graph_destroy(graph);
    job_config_destroy(job);
    return rc;
}
