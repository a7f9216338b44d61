/* job_check.c - checks that span several fields of a job. Each error names the field to change and
 * the one that it contradicts. */
#include "common/config/job.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH_MAX 63

/* Job names are used as directories, labels and columns of tables. */
static int check_name(const struct job_config *job, const struct document *document,
                      struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.";
    size_t length = strlen(job->name);
    if (length > NAME_LENGTH_MAX || strspn(job->name, allowed) != length ||
        strchr("-_.", job->name[0]))
        return document_fail_at(document, "name", err,
                                "'%.100s' cannot be a name: write at most %d letters, digits, '-', "
                                "'_' and '.', the first a letter or digit",
                                job->name, NAME_LENGTH_MAX);
    return 0;
}

/* Only files of tokens leave it open what a token is. A text is not encoded while it is trained on:
 * every executor would do that again whenever it starts, before it knew how many samples there
 * are. */
static int check_tokenizer(struct job_config *job, const struct document *document,
                           struct error *err)
{
    struct job_data *data = &job->data;
    enum job_tokenizer tokenizer = job_tokenizer(job);
    if (tokenizer == JOB_OTHER && strcmp(data->tokenizer, "other") != 0)
        return document_fail_at(document, "data.tokenizer", err,
                                "'%.100s' is not known: write other, bytes or the path of a "
                                "tokenizer.json, such as /shared/gpt2/tokenizer.json",
                                data->tokenizer);
    if (data->images.count && tokenizer != JOB_OTHER)
        return document_fail_at(document, "data.tokenizer", err, "is for tokens: images have none");
    if (data->text.count && tokenizer == JOB_FILE)
        return document_fail_at(document, "data.tokenizer", err,
                                "is for data.tokens, every byte of data.text is a token: pack the "
                                "texts with 'gimbal data pack --tokenizer %.100s TEXT... -o "
                                "corpus.bin'",
                                data->tokenizer);
    if (data->text.count) {
        free(data->tokenizer);
        data->tokenizer = xstrdup("bytes");
    }
    return 0;
}

/* Bytes have a vocabulary by themselves. */
static int check_vocab(struct job_config *job, const struct document *document, struct error *err)
{
    const struct job_data *data = &job->data;
    bool bytes = job_tokenizer(job) == JOB_BYTES;
    if (!job->model.vocab && !bytes)
        return document_fail_at(document, "model.vocab", err, "missing: %s",
                                data->tokens.count ? "token files need the size of their vocabulary"
                                                   : "images need the number of their classes");
    if (!job->model.vocab)
        job->model.vocab = JOB_BYTE_VOCAB;
    if (bytes && job->model.vocab < JOB_BYTE_VOCAB)
        return document_fail_at(document, "model.vocab", err,
                                "%" PRId64 " is too small for %s, where every byte is a "
                                "token: write at least %d or leave it out",
                                job->model.vocab,
                                data->text.count ? "data.text" : "data.tokenizer: bytes",
                                JOB_BYTE_VOCAB);
    return 0;
}

static int check_data(struct job_config *job, const struct document *document, struct error *err)
{
    const struct job_data *data = &job->data;
    if (data->text.count && data->tokens.count)
        return document_fail_at(document, "data.tokens", err,
                                "data.text is written too: write one of the two");
    if (data->images.count && (data->text.count || data->tokens.count))
        return document_fail_at(document, "data.images", err,
                                "data.%s is written too: write one of the two",
                                data->text.count ? "text" : "tokens");
    if (!data->text.count && !data->tokens.count && !data->images.count)
        return document_fail_at(document, "data", err,
                                "names no files: write text: [FILE or DIRECTORY, ...] or tokens: "
                                "[FILE, ...]");
    if (data->format != JOB_FORMAT_AUTO && !data->tokens.count)
        return document_fail_at(document, "data.format", err,
                                "is for data.tokens, and data.%s has no format to tell",
                                data->text.count ? "text" : "images");
    int rc = check_tokenizer(job, document, err);
    return rc == 0 ? check_vocab(job, document, err) : rc;
}

/* Refuse values that the rope type does not use: they would silently have no effect. */
static int check_rope_used(const struct job_rope_scaling *rope, const struct document *document,
                           struct error *err)
{
    const struct {
        const char *key;
        bool given;
    } keys[] = {
        {"low_freq_factor", rope->low_freq_factor > 0},
        {"high_freq_factor", rope->high_freq_factor > 0},
        {"original_max_position_embeddings", rope->original_max_position_embeddings > 0},
    };
    char path[80];
    if (rope->rope_type == JOB_ROPE_DEFAULT && rope->factor > 0)
        return document_fail_at(document, "model.rope_scaling.factor", err,
                                "is of rope_type: linear or llama3");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(path, sizeof path, "model.rope_scaling.%s", keys[i].key);
        if (keys[i].given && rope->rope_type != JOB_ROPE_LLAMA3)
            return document_fail_at(document, path, err, "is of rope_type: llama3");
    }
    return 0;
}

static int check_rope(struct job_config *job, const struct document *document, struct error *err)
{
    struct job_rope_scaling *rope = &job->model.rope_scaling;
    int rc = check_rope_used(rope, document, err);
    if (rc < 0 || rope->rope_type == JOB_ROPE_DEFAULT)
        return rc;
    if (rope->factor == 0)
        return document_fail_at(document, "model.rope_scaling.factor", err,
                                "missing: write by how much positions turn slower, such as 8");
    if (rope->rope_type != JOB_ROPE_LLAMA3)
        return 0;
    if (rope->low_freq_factor == 0)
        rope->low_freq_factor = 1;
    if (rope->high_freq_factor == 0)
        rope->high_freq_factor = 4;
    if (rope->original_max_position_embeddings == 0)
        rope->original_max_position_embeddings = 8192;
    if (rope->low_freq_factor >= rope->high_freq_factor)
        return document_fail_at(document, "model.rope_scaling.low_freq_factor", err,
                                "%g is not less than high_freq_factor, %g", rope->low_freq_factor,
                                rope->high_freq_factor);
    return 0;
}

static int check_train(const struct job_config *job, const struct document *document,
                       struct error *err)
{
    const struct job_train *train = &job->train;
    if (train->warmup > train->steps)
        return document_fail_at(document, "train.warmup", err,
                                "%" PRId64 " steps are more than train.steps, %" PRId64,
                                train->warmup, train->steps);
    const struct job_devices *devices = &job->devices;
    if (devices->max && devices->min > devices->max)
        return document_fail_at(document, "devices.min", err,
                                "%" PRId64 " is more than devices.max, %" PRId64, devices->min,
                                devices->max);
    return 0;
}

static int check_pin(const struct job_config *job, const struct document *document,
                     struct error *err)
{
    const struct job_pin *pin = &job->plan.pin;
    int64_t batch = job->train.global_batch;
    if (pin->micro_batches && batch % pin->micro_batches != 0)
        return document_fail_at(document, "plan.pin.micro_batches", err,
                                "%" PRId64 " does not divide train.global_batch, %" PRId64
                                " samples",
                                pin->micro_batches, batch);
    const int64_t pins[] = {pin->dp, pin->tp, pin->pp};
    int64_t devices = 1, devices_max = job->devices.max ? job->devices.max : INT64_MAX;
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++) {
        if (pins[i] && devices > devices_max / pins[i])
            return document_fail_at(document, "plan.pin", err,
                                    "dp x tp x pp is more than devices.max, %" PRId64,
                                    job->devices.max);
        devices *= pins[i] ? pins[i] : 1;
    }
    return 0;
}

static int check_forbid(const struct job_config *job, const struct document *document,
                        struct error *err)
{
    if (job->plan.forbid.zero == 0xf)
        return document_fail_at(document, "plan.forbid.zero", err,
                                "forbids 0, 1, 2 and 3: leave one of them");
    if (job->plan.forbid.recompute == 0x7)
        return document_fail_at(document, "plan.forbid.recompute", err,
                                "forbids none, selective and full: leave one of them");
    return 0;
}

/* Check evaluation and checkpoints, and fill in the default of checkpoint.keep. */
static int check_saved(struct job_config *job, const struct document *document, struct error *err)
{
    if (job->eval.every && job->eval.holdout == 0)
        return document_fail_at(document, "eval.holdout", err,
                                "missing or 0: eval.every needs data that is held out, such as "
                                "holdout: 0.05");
    struct job_checkpoint *checkpoint = &job->checkpoint;
    if (!checkpoint->dir && (checkpoint->every || checkpoint->keep))
        return document_fail_at(document, "checkpoint.dir", err,
                                "missing: write the directory that checkpoints go to");
    if (checkpoint->dir && !checkpoint->keep)
        checkpoint->keep = CHECKPOINTS_KEPT;
    return 0;
}

int job_check(struct job_config *job, const struct document *document, struct error *err)
{
    int rc = check_name(job, document, err);
    if (rc == 0)
        rc = check_data(job, document, err);
    if (rc == 0)
        rc = check_rope(job, document, err);
    if (rc == 0)
        rc = check_train(job, document, err);
    if (rc == 0)
        rc = check_pin(job, document, err);
    if (rc == 0)
        rc = check_forbid(job, document, err);
    if (rc == 0)
        rc = check_saved(job, document, err);
    return rc;
}
