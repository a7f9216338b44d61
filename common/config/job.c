/* job.c - the table of the job file's keys; what may not contradict; and reading and freeing a job
 * by both. */
#include "common/config/job.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/config/document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEGER(type, member, low, high, words)                                                    \
    FIELD(type, member, FIELD_INTEGER), .least = low, .greatest = high, .unit = words
#define REAL(type, member, low, high)                                                              \
    FIELD(type, member, FIELD_REAL), .least = low, .greatest = high, .unit = FIELD_NO_UNIT

static const char *const versions[] = {"gimbal/v1", NULL};
static const char *const dtypes[] = {"f32", "bf16", NULL}; /* as enum element counts */
const char *const job_formats[] = {"auto", "uint16", "uint32", NULL};
const char *const job_rope_types[] = {"default", "linear", "llama3", NULL};
static const char *const objectives[] = {"throughput", "devices", "frontier", NULL};
static const char *const zero_stages[] = {"0", "1", "2", "3", NULL};
static const char *const recompute_words[] = {"none", "selective", "full", NULL};

static const struct field rope_scaling_fields[] = {
    {FIELD(job_rope_scaling, rope_type, FIELD_CHOICE), .standard = "default",
     .words = job_rope_types,
     .about = "linear slows down all rotations, llama3 only the slow ones, default none at all"},
    {REAL(job_rope_scaling, factor, 1, 1e6),
     .about = "how many times slower they turn; LLaMA 3.1 has 8, 3.2 has 32"},
    {REAL(job_rope_scaling, low_freq_factor, 0, 1e6), .above = true,
     .about = "pairs that turn less often than this over the original length are slowed; by "
              "default 1"},
    {REAL(job_rope_scaling, high_freq_factor, 0, 1e6), .above = true,
     .about = "those that turn more often are not, and those in between partly; by default 4"},
    {INTEGER(job_rope_scaling, original_max_position_embeddings, 1, 16777216, "tokens"),
     .about = "the length that the model first learned from; by default 8192"},
    {.key = NULL},
};

static const struct field model_fields[] = {
    {FIELD(job_model, family, FIELD_TEXT), .required = true,
     .about = "gpt, llama, qwen and qwen3 can be trained; bert and vit can only be planned"},
    {INTEGER(job_model, layers, 1, 10000, "layers"), .required = true,
     .about = "blocks between the embedding and the head"},
    {INTEGER(job_model, hidden, 1, 1048576, "features"), .required = true,
     .about = "the width of the residual stream"},
    {INTEGER(job_model, heads, 1, 65536, "heads"), .required = true,
     .about = "attention heads; the number divides hidden"},
    {INTEGER(job_model, seq, 1, 16777216, "tokens"), .required = true,
     .about = "the length of a sample"},
    {INTEGER(job_model, vocab, 2, 16777216, "tokens"),
     .about = "the size of the vocabulary, or the number of classes; by default 256 for bytes"},
    {INTEGER(job_model, ffn, 1, 16777216, "features"),
     .about = "the inner width of a block; by default the family's usual multiple of hidden"},
    {INTEGER(job_model, head_dim, 1, 65536, "features"),
     .about = "the width of a head; by default hidden divided by heads"},
    {INTEGER(job_model, kv_heads, 1, 65536, "heads"),
     .about = "heads of keys and values; by default as many as heads"},
    {INTEGER(job_model, patch, 1, 4096, "pixels"), .about = "the side length of an image patch"},
    {REAL(job_model, norm_epsilon, 0, 1), .above = true,
     .about = "what norms add to a variance; by default 1e-5"},
    {REAL(job_model, rope_theta, 1, 1e12),
     .about = "the base of rotary positions; by default 10000"},
    {FIELD(job_model, rope_scaling, FIELD_SECTION), .fields = rope_scaling_fields,
     .about =
         "slows rotary positions for texts longer than those that the model first learned from"},
    {FIELD(job_model, tied, FIELD_ANSWER),
     .about = "whether the head shares the embedding's table; by default false; gpt: always true"},
    {FIELD(job_model, weights, FIELD_TEXT),
     .about = "a folder of initial weights, as transformers saves them, on every node; by default "
              "train.seed draws them"},
    {.key = NULL},
};

static const struct field data_fields[] = {
    {FIELD(job_data, text, FIELD_TEXTS),
     .about = "files or folders, on every node; every byte is a token"},
    {FIELD(job_data, tokens, FIELD_TEXTS),
     .about = "files of token ids, 16 or 32 bits each, of 'gimbal data pack', llm.c, Megatron-LM "
              "(the .bin, the .idx, or what both begin with) or nanoGPT (with a format)"},
    {FIELD(job_data, format, FIELD_CHOICE), .standard = "auto", .words = job_formats,
     .about = "how files of tokens are read: auto as their headers say; uint16 or uint32 if they "
              "have none, as nanoGPT's train.bin, which is uint16"},
    {FIELD(job_data, tokenizer, FIELD_TEXT), .standard = "other",
     .about = "what the tokens are: bytes, as in all text, the path of a tokenizer.json on every "
              "node, or other; models of other tokens cannot write"},
    {FIELD(job_data, images, FIELD_TEXTS), .about = "folders, one per class"},
    {.key = NULL},
};

static const struct field train_fields[] = {
    {INTEGER(job_train, steps, 1, 1e9, "steps"), .required = true,
     .about = "how often the weights are updated"},
    {INTEGER(job_train, global_batch, 1, 1e9, "samples"), .required = true,
     .about = "samples a step, over all devices, whatever the plan"},
    {REAL(job_train, lr, 0, 100), .required = true, .above = true,
     .about = "the learning rate after warm-up; it then falls to a tenth along a cosine"},
    {INTEGER(job_train, warmup, 0, 1e9, "steps"), .standard = "0",
     .about = "steps in which the learning rate grows from 0"},
    {REAL(job_train, weight_decay, 0, 100), .standard = "0.1",
     .about = "weight decay of matrices; vectors have none"},
    {REAL(job_train, clip, 0, 1e6), .standard = "1.0",
     .about = "the largest allowed norm of the gradient; 0: no clipping"},
    {FIELD(job_train, dtype, FIELD_CHOICE), .standard = "f32", .words = dtypes,
     .about = "what is computed in; masters, moments and sums of gradients are always f32"},
    {INTEGER(job_train, seed, 0, 0x1p53, FIELD_NO_UNIT), .standard = "1",
     .about = "decides the initial weights and the order of the samples"},
    {REAL(job_train, beta1, 0, 1), .standard = "0.9", .below = true,
     .about = "AdamW's decay of the first moment"},
    {REAL(job_train, beta2, 0, 1), .standard = "0.95", .below = true,
     .about = "AdamW's decay of the second moment"},
    {REAL(job_train, epsilon, 0, 1), .standard = "1e-8", .above = true,
     .about = "what AdamW adds to its divisor"},
    {.key = NULL},
};

static const struct field devices_fields[] = {
    {INTEGER(job_devices, min, 1, 1000000, "devices"), .standard = "1",
     .about = "the job waits until it can have this many"},
    {INTEGER(job_devices, max, 1, 1000000, "devices"),
     .about = "it is given no more than this; by default as many as there are"},
    {.key = NULL},
};

static const struct field pin_fields[] = {
    {INTEGER(job_pin, dp, 1, 1000000, "devices"),
     .about = "devices that the batch is divided among"},
    {INTEGER(job_pin, tp, 1, 1000000, "devices"),
     .about = "devices that weights are divided among"},
    {INTEGER(job_pin, pp, 1, 1000000, "stages"), .about = "pipeline stages"},
    {INTEGER(job_pin, micro_batches, 1, 1000000, "micro-batches"),
     .about = "micro-batches a step; the number divides train.global_batch"},
    {.key = NULL},
};

static const struct field forbid_fields[] = {
    {FIELD(job_forbid, roles, FIELD_TEXTS),
     .about = "ways to divide a block that no plan may use, such as tensor"},
    {FIELD(job_forbid, zero, FIELD_CHOICES), .words = zero_stages,
     .about = "ZeRO stages that no plan may use"},
    {FIELD(job_forbid, recompute, FIELD_CHOICES), .words = recompute_words,
     .about = "kinds of recomputation that no plan may use"},
    {.key = NULL},
};

static const struct field plan_fields[] = {
    {FIELD(job_plan, objective, FIELD_CHOICE), .standard = "throughput", .words = objectives,
     .about = "the fastest plan that fits, the one on the fewest devices, or both and all plans in "
              "between"},
    {FIELD(job_plan, memory, FIELD_SIZE), .least = 0x1p20, .greatest = 0x1p50,
     .about = "how much of each device's memory to use; by default all of it"},
    {FIELD(job_plan, search, FIELD_TEXT), .about = "how to search for a plan; by default exact"},
    {FIELD(job_plan, schedule, FIELD_TEXT),
     .about = "the order of a pipeline's micro-batches; by default the planner decides"},
    {FIELD(job_plan, overlap, FIELD_BOOLEAN), .standard = "true",
     .about = "whether communication may overlap with computation"},
    {FIELD(job_plan, pin, FIELD_SECTION), .fields = pin_fields,
     .about = "parts of the plan that are already decided"},
    {FIELD(job_plan, forbid, FIELD_SECTION), .fields = forbid_fields,
     .about = "what no plan may use"},
    {.key = NULL},
};

static const struct field elastic_fields[] = {
    {INTEGER(job_elastic, copy_every, 0, 1e6, "steps"), .standard = "1",
     .about = "steps between copies of the state to a neighbour's memory, at least; 0: no copies"},
    {REAL(job_elastic, copy_share, 0, 1e6), .standard = "0.1",
     .about = "the share of a step's time that copies may take; if they take more, they are made "
              "less often; 0: no limit"},
    {FIELD(job_elastic, orphan, FIELD_DURATION), .standard = "10m", .least = 1,
     .greatest = 7 * 24 * 3600, .about = "how long training continues without a coordinator"},
    {FIELD(job_elastic, stall, FIELD_DURATION), .standard = "10s", .least = 2,
     .greatest = 7 * 24 * 3600,
     .about = "how long a rank may hold up the others before it is ended"},
    {INTEGER(job_elastic, max_restarts, 0, 1e6, "restarts"), .standard = "20",
     .about = "replans after a loss and restarts, without a new step in between, before the job "
              "fails"},
    {INTEGER(job_elastic, max_skipped, 0, 1e6, "steps"), .standard = "10",
     .about = "steps in a row without a finite loss and gradient after which the job goes back to "
              "its newest checkpoint; 0: it never does"},
    {FIELD(job_elastic, replan, FIELD_BOOLEAN), .standard = "true",
     .about = "whether executors may continue under another plan; else the job restarts from a "
              "checkpoint"},
    {.key = NULL},
};

static const struct field eval_fields[] = {
    {INTEGER(job_eval, every, 1, 1e9, "steps"),
     .about = "steps between evaluations on held-out data; by default there are none"},
    {REAL(job_eval, holdout, 0, 0.9), .standard = "0",
     .about = "the share of the data, at its end, that is held out and never trained on"},
    {FIELD(job_eval, data, FIELD_TEXTS),
     .about = "files to evaluate on instead of a holdout, of the same kind as those of data"},
    {INTEGER(job_eval, samples, 1, 1e9, "samples"),
     .about = "evaluate on so many held-out samples, the same each time and evenly spread; by "
              "default on all"},
    {INTEGER(job_eval, sample, 0, 1e6, "bytes"), .standard = "0",
     .about = "how much text the model writes at the end; none if data.tokenizer is other"},
    {.key = NULL},
};

static const struct field checkpoint_fields[] = {
    {FIELD(job_checkpoint, dir, FIELD_TEXT),
     .about = "a folder that all nodes of the job share; by default one below the coordinator's "
              "'checkpoints', or ./runs without a cluster"},
    {INTEGER(job_checkpoint, every, 1, 1e9, "steps"),
     .about = "steps between checkpoints; by default about every ten minutes, and the last step"},
    {INTEGER(job_checkpoint, keep, 1, 1e6, "checkpoints"), .standard = "3",
     .about = "how many of the newest ones to keep"},
    {FIELD(job_checkpoint, patience, FIELD_DURATION), .least = 1, .greatest = 7 * 24 * 3600,
     .about = "how long it is tried to save the last step, while its state stays in memory, before "
              "the job fails; by default 10m, and 30s with train --local"},
    {.key = NULL},
};

static const struct field log_fields[] = {
    {FIELD(job_log, tensorboard, FIELD_TEXT),
     .about = "a folder; the job writes event files for TensorBoard into NAME-JOB there"},
    {FIELD(job_log, jsonl, FIELD_TEXT),
     .about = "a file to which the job appends what it measures, a JSON object a line"},
    {.key = NULL},
};

const struct field job_config_fields[] = {
    {.key = "apiVersion",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct job_config, api_version),
     .required = true,
     .words = versions,
     .about = "the version of this file's format"},
    {FIELD(job_config, name, FIELD_TEXT), .required = true,
     .about = "the job's name, in tables and folders, too: letters, digits, '-', '_' and '.'"},
    {FIELD(job_config, model, FIELD_SECTION), .required = true, .fields = model_fields,
     .about = "the model to train"},
    {FIELD(job_config, data, FIELD_SECTION), .required = true, .fields = data_fields,
     .about = "what the model learns from: one of these"},
    {FIELD(job_config, train, FIELD_SECTION), .required = true, .fields = train_fields,
     .about = "how the model is trained"},
    {FIELD(job_config, devices, FIELD_SECTION), .fields = devices_fields,
     .about = "how many devices the job may have"},
    {FIELD(job_config, plan, FIELD_SECTION), .fields = plan_fields,
     .about = "how the job is divided among devices, and what it may not do"},
    {FIELD(job_config, elastic, FIELD_SECTION), .fields = elastic_fields,
     .about = "what happens when devices are lost or added"},
    {FIELD(job_config, eval, FIELD_SECTION), .fields = eval_fields,
     .about = "how well the model does on data that it has not seen"},
    {FIELD(job_config, checkpoint, FIELD_SECTION), .fields = checkpoint_fields,
     .about = "what is saved to disk"},
    {FIELD(job_config, log, FIELD_SECTION), .fields = log_fields,
     .about = "losses and speed, written for other programs by the node of rank 0"},
    {.key = NULL},
};

/* Job names are used as directories, labels and columns of tables. */
static int check_name(const struct job_config *job, const struct document *document,
                      struct error *err)
{
    if (!text_is_name(job->name))
        return document_fail_at(document, "name", err,
                                "'%.100s' cannot be a name: write at most %d letters, digits, '-', "
                                "'_' and '.', the first a letter or digit",
                                job->name, TEXT_NAME_SIZE - 1);
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

/* Refuse what would silently have no effect. */
static int check_eval(const struct job_config *job, const struct document *document,
                      struct error *err)
{
    const struct job_eval *eval = &job->eval;
    bool held = eval->holdout > 0 || eval->data.count > 0;
    if (eval->holdout > 0 && eval->data.count > 0)
        return document_fail_at(document, "eval.data", err,
                                "eval.holdout is written too: write one of the two");
    if (eval->every && !held)
        return document_fail_at(document, "eval.holdout", err,
                                "missing or 0: eval.every needs data that is held out, such as "
                                "holdout: 0.05, or an eval.data");
    if (!eval->every && (eval->data.count || eval->samples))
        return document_fail_at(document, eval->data.count ? "eval.data" : "eval.samples", err,
                                "nothing is evaluated without eval.every: write how many steps are "
                                "between two evaluations");
    return 0;
}

/* Completes and checks a job that was read from this document. Each error names the field to change
 * and the one that it contradicts. */
static int job_check(struct job_config *job, const struct document *document, struct error *err)
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
        rc = check_eval(job, document, err);
    return rc;
}

static int job_read(const struct document *document, struct job_config **out, struct error *err)
{
    struct job_config *job = xcalloc(1, sizeof *job);
    int rc = fields_read(job_config_fields, document, job, err);
    if (rc == 0)
        rc = job_check(job, document, err);
    if (rc < 0) {
        job_config_destroy(job);
        return rc;
    }
    *out = job;
    return 0;
}

int job_config_load(const char *path, struct job_config **out, struct error *err)
{
    struct document *document;
    int rc = document_load(path, &document, err);
    if (rc < 0)
        return rc;
    rc = job_read(document, out, err);
    document_destroy(document);
    return rc;
}

int job_config_parse(const char *text, size_t size, const char *name, struct job_config **out,
                     struct error *err)
{
    struct document *document;
    int rc = document_parse(text, size, name, &document, err);
    if (rc < 0)
        return rc;
    rc = job_read(document, out, err);
    document_destroy(document);
    return rc;
}

void job_config_place(const char *text, size_t size, const char *name, struct error *err)
{
    struct document *document;
    struct error words = *err;
    size_t length = strcspn(words.text, " ");
    bool field = words.text[length] && memchr(words.text, '.', length);
    if (!field || document_parse(text, size, name, &document, err) < 0) {
        error_set(err, 0, "%s: %s", name, words.text);
        return;
    }
    words.text[length] = '\0';
    document_fail_at(document, words.text, err, "%s", words.text + length + 1);
    document_destroy(document);
}

#define SAVING_PATIENCE_S 600
#define SAVING_PATIENCE_ALONE_S 30

double job_saving_patience_s(const struct job_config *job, bool alone)
{
    if (job->checkpoint.patience > 0)
        return job->checkpoint.patience;
    return alone ? SAVING_PATIENCE_ALONE_S : SAVING_PATIENCE_S;
}

void job_config_destroy(struct job_config *job)
{
    if (!job)
        return;
    fields_clear(job_config_fields, job);
    free(job);
}

enum job_tokenizer job_tokenizer(const struct job_config *job)
{
    return strcmp(job->data.tokenizer, "bytes") == 0 ? JOB_BYTES
           : strchr(job->data.tokenizer, '/')        ? JOB_FILE
                                                     : JOB_OTHER;
}

bool job_ends_texts(const struct job_config *job)
{
    return job->data.tokens.count && job_tokenizer(job) == JOB_BYTES &&
           job->model.vocab > JOB_BYTE_VOCAB;
}
