/* sample.c - gathers the slices of a many-rank plan on rank 0, for a one-rank program that writes.
 *
 * Of all ranks that hold a slice, the one that counts it in the global norm sends it. The one-rank
 * program needs memory beside what was trained, so rank 0 first tells the others whether it has
 * it. */
#include "worker/trainer/trainer.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "worker/tokenizer/byte_buffer.h"
#include "worker/trainer/writer.h"

#include <errno.h>
#include <stdlib.h>

#define TEMPERATURE 0.8
#define TAG_READY 0x80000000u /* above the tags of programs */
#define TAG_FIRST (TAG_READY + 1)

static int sample_send(const struct trainer_config *config, int to, uint32_t tag, const float *data,
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
        rc = sample_send(config, rank, TAG_READY, &word, 1, err);
    return rc;
}

/* Send this rank's slices, if rank 0 is ready for them. */
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
            rc = sample_send(config, 0, TAG_FIRST + (uint32_t)parameter->tensor,
                             interpreter_buffer(in, parameter->master),
                             (size_t)box_count(&parameter->box), err);
    }
    return rc;
}

/* Copy one rank's slices into the whole tensors, which are the masters of the one-rank program. */
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

static int keep(void *data, const char *bytes, size_t size)
{
    byte_buffer_add(data, bytes, size);
    return 0;
}

static int write_text(const struct trainer_config *config, struct writer *writer, struct error *err)
{
    struct byte_buffer text = {0};
    const struct writing writing = {.tokenizer = config->tokenizer,
                                    .bytes = (size_t)config->job->eval.sample,
                                    .temperature = TEMPERATURE,
                                    .seed = (uint64_t)config->job->train.seed,
                                    .wrote_cb = keep,
                                    .data = &text};
    int rc = writer_write(writer, &writing, err);
    if (rc == 0 && text.size > 0 && config->reporter->sample)
        config->reporter->sample(config->reporter->context, config->rank,
                                 (uint64_t)config->job->train.steps, (const uint8_t *)text.bytes,
                                 text.size);
    byte_buffer_finish(&text);
    return rc;
}

static int gather_and_write(const struct trainer_config *config, struct interpreter *in,
                            struct writer *writer, struct error *err)
{
    struct interpreter *whole = writer_interpreter(writer);
    int rc = take_all(config, in, whole, err);
    if (rc == 0)
        rc = interpreter_store_state(whole, err);
    return rc == 0 ? write_text(config, writer, err) : rc;
}

/* Training that ended well must not fail because there is no memory for a sample. */
static int sample_if_room(const struct trainer_config *config, struct interpreter *in,
                          struct error *err)
{
    struct writer *writer = NULL;
    struct error why = {""};
    int prepared = writer_prepare(config->graph, config->device, &writer, &why);
    int rc = tell_ready(config, prepared == 0, err);
    if (prepared == -ENOMEM || prepared == -ENOBUFS)
        log_line(LOG_WARN, "no sample: the whole model has no room beside what was trained: %s",
                 why.text);
    else if (prepared < 0)
        rc = error_set(err, prepared, "%s", why.text);
    else if (rc == 0)
        rc = gather_and_write(config, in, writer, err);
    writer_destroy(writer);
    return rc;
}

int writer_sample(const struct trainer_config *config, struct interpreter *in, struct error *err)
{
    if (!config->tokenizer)
        return 0;
    int rc = interpreter_fetch_state(in, err);
    if (rc < 0)
        return rc;
    if (config->rank != 0)
        return send_slices(config, in, err);
    rc = sample_if_room(config, in, err);
    return rc < 0 ? error_prefix(err, rc, "sample") : 0;
}
