/* job.c - the job file's table, and the life of what is read through it. */
#include "common/config/job.h"

#include "common/base/memory.h"
#include "common/config/document.h"
#include "common/config/job_check.h"

#include <stdlib.h>
#include <string.h>

#define AT(type, member, what) .key = #member, .kind = what, .offset = offsetof(struct type, member)
#define INTEGER(type, member, low, high, words)                                                    \
    AT(type, member, FIELD_INTEGER), .least = low, .greatest = high, .unit = words
#define REAL(type, member, low, high)                                                              \
    AT(type, member, FIELD_REAL), .least = low, .greatest = high, .unit = FIELD_NO_UNIT

static const char *const versions[] = {"gimbal/v1", NULL};
static const char *const dtypes[] = {"f32", "bf16", NULL};
const char *const job_rope_types[] = {"default", "linear", "llama3", NULL};
static const char *const objectives[] = {"throughput", "devices", "frontier", NULL};
static const char *const zero_stages[] = {"0", "1", "2", "3", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};

static const struct field rope_scaling_fields[] = {
    {AT(job_rope_scaling, rope_type, FIELD_CHOICE), .standard = "default", .words = job_rope_types,
     .about = "linear slows all positions, llama3 the slow ones; default none"},
    {REAL(job_rope_scaling, factor, 1, 1e6),
     .about = "by which they are slower; 8 in LLaMA 3.1, 32 in 3.2"},
    {REAL(job_rope_scaling, low_freq_factor, 0, 1e6), .above = true,
     .about = "what turns less often in the original length is slowed; 1 unless given"},
    {REAL(job_rope_scaling, high_freq_factor, 0, 1e6), .above = true,
     .about = "what turns more often is not, and between both by parts; 4 unless given"},
    {INTEGER(job_rope_scaling, original_max_position_embeddings, 1, 16777216, "tokens"),
     .about = "the original length; 8192 unless given"},
    {.key = NULL},
};

static const struct field model_fields[] = {
    {AT(job_model, family, FIELD_TEXT), .required = true,
     .about = "gpt, llama, qwen and qwen3 are trained; bert and vit are planned only"},
    {INTEGER(job_model, layers, 1, 10000, "layers"), .required = true,
     .about = "blocks between the embedding and the head"},
    {INTEGER(job_model, hidden, 1, 1048576, "features"), .required = true,
     .about = "the width of the residual stream"},
    {INTEGER(job_model, heads, 1, 65536, "heads"), .required = true,
     .about = "of attention; they divide hidden"},
    {INTEGER(job_model, seq, 1, 16777216, "tokens"), .required = true,
     .about = "the length of a sample"},
    {INTEGER(job_model, vocab, 2, 16777216, "tokens"),
     .about = "256 for data.text unless given; the number of classes for data.images"},
    {INTEGER(job_model, ffn, 1, 16777216, "features"),
     .about = "the inner width of a block; the family's usual multiple of hidden unless given"},
    {INTEGER(job_model, head_dim, 1, 65536, "features"),
     .about = "the width of a head; hidden divided by heads unless given"},
    {INTEGER(job_model, kv_heads, 1, 65536, "heads"),
     .about = "heads of keys and values; as many as heads unless given"},
    {INTEGER(job_model, patch, 1, 4096, "pixels"), .about = "the edge of a patch of an image"},
    {REAL(job_model, norm_epsilon, 0, 1), .above = true,
     .about = "what norms add to a variance; 1e-5 unless given"},
    {REAL(job_model, rope_theta, 1, 1e12),
     .about = "the base of rotary positions; 10000 unless given"},
    {AT(job_model, rope_scaling, FIELD_SECTION), .fields = rope_scaling_fields,
     .about = "of rotary positions for texts longer than those that the model first learned from"},
    {AT(job_model, tied, FIELD_ANSWER),
     .about = "has the head the embedding's table for its weight? Not unless given; gpt always"},
    {AT(job_model, weights, FIELD_TEXT),
     .about = "a folder of transformers to begin from, on every node; else train.seed draws them"},
    {.key = NULL},
};

static const struct field data_fields[] = {
    {AT(job_data, text, FIELD_TEXTS),
     .about = "files or folders on every node; every byte is a token"},
    {AT(job_data, tokens, FIELD_TEXTS), .about = "files of token ids, 16 or 32 bits each"},
    {AT(job_data, images, FIELD_TEXTS), .about = "folders, one per class"},
    {.key = NULL},
};

static const struct field train_fields[] = {
    {INTEGER(job_train, steps, 1, 1e9, "steps"), .required = true,
     .about = "updates of the weights"},
    {INTEGER(job_train, global_batch, 1, 1e9, "samples"), .required = true,
     .about = "of a step, over all devices, however they are divided"},
    {REAL(job_train, lr, 0, 100), .required = true, .above = true,
     .about = "the learning rate behind warm-up; a cosine takes it down to a tenth"},
    {INTEGER(job_train, warmup, 0, 1e9, "steps"), .standard = "0",
     .about = "over which the learning rate grows from 0"},
    {REAL(job_train, weight_decay, 0, 100), .standard = "0.1",
     .about = "of matrices; vectors have none"},
    {REAL(job_train, clip, 0, 1e6), .standard = "1.0",
     .about = "the largest norm of the gradient; 0: it is not clipped"},
    {AT(job_train, dtype, FIELD_CHOICE), .standard = "f32", .words = dtypes,
     .about = "of computing; masters, moments and sums of gradients are f32 in any case"},
    {INTEGER(job_train, seed, 0, 0x1p53, FIELD_NO_UNIT), .standard = "1",
     .about = "of the first weights and of the order of the samples"},
    {REAL(job_train, beta1, 0, 1), .standard = "0.9", .below = true, .about = "of AdamW"},
    {REAL(job_train, beta2, 0, 1), .standard = "0.95", .below = true, .about = "of AdamW"},
    {REAL(job_train, epsilon, 0, 1), .standard = "1e-8", .above = true, .about = "of AdamW"},
    {.key = NULL},
};

static const struct field devices_fields[] = {
    {INTEGER(job_devices, min, 1, 1000000, "devices"), .standard = "1",
     .about = "the job waits until it can have so many"},
    {INTEGER(job_devices, max, 1, 1000000, "devices"),
     .about = "it is given no more; as many as there are unless given"},
    {.key = NULL},
};

static const struct field pin_fields[] = {
    {INTEGER(job_pin, dp, 1, 1000000, "devices"),
     .about = "devices that the batch is divided over"},
    {INTEGER(job_pin, tp, 1, 1000000, "devices"), .about = "devices that weights are divided over"},
    {INTEGER(job_pin, pp, 1, 1000000, "stages"), .about = "stages of the pipeline"},
    {INTEGER(job_pin, micro_batches, 1, 1000000, "micro-batches"),
     .about = "of a step; they divide train.global_batch"},
    {.key = NULL},
};

static const struct field forbid_fields[] = {
    {AT(job_forbid, roles, FIELD_TEXTS),
     .about = "ways to divide a block that no plan may use, such as tensor"},
    {AT(job_forbid, zero, FIELD_CHOICES), .words = zero_stages,
     .about = "stages of ZeRO that no plan may use"},
    {AT(job_forbid, recompute, FIELD_CHOICES), .words = recomputes,
     .about = "what no plan may do to save memory"},
    {.key = NULL},
};

static const struct field plan_fields[] = {
    {AT(job_plan, objective, FIELD_CHOICE), .standard = "throughput", .words = objectives,
     .about = "the fastest plan that fits, the one on the fewest devices, or both and all between"},
    {AT(job_plan, memory, FIELD_SIZE), .least = 0x1p20, .greatest = 0x1p50,
     .about = "of every device; what it has unless given"},
    {AT(job_plan, search, FIELD_TEXT), .about = "how a plan is looked for; exact unless given"},
    {AT(job_plan, schedule, FIELD_TEXT),
     .about = "of a pipeline's micro-batches; the planner decides unless given"},
    {AT(job_plan, overlap, FIELD_BOOLEAN), .standard = "true",
     .about = "may communication go beside computing?"},
    {AT(job_plan, pin, FIELD_SECTION), .fields = pin_fields,
     .about = "parts of the plan that are decided already"},
    {AT(job_plan, forbid, FIELD_SECTION), .fields = forbid_fields, .about = "what no plan may use"},
    {.key = NULL},
};

static const struct field elastic_fields[] = {
    {INTEGER(job_elastic, copy_every, 0, 1e6, "steps"), .standard = "1",
     .about = "between copies of the state in a neighbour's memory, at least; 0: none are made"},
    {REAL(job_elastic, copy_share, 0, 1e6), .standard = "0.1",
     .about = "of a step's time that copies may take: where it is more they are made less often; "
              "0: however long they take"},
    {AT(job_elastic, orphan, FIELD_DURATION), .standard = "10m", .least = 1,
     .greatest = 7 * 24 * 3600, .about = "how long it trains on without a coordinator"},
    {AT(job_elastic, stall, FIELD_DURATION), .standard = "10s", .least = 2,
     .greatest = 7 * 24 * 3600,
     .about = "how long a rank may hold up the others before it is ended"},
    {INTEGER(job_elastic, max_restarts, 0, 1e6, "restarts"), .standard = "20",
     .about = "replans after a loss and restarts, with no further step in between, before it has "
              "failed"},
    {INTEGER(job_elastic, max_skipped, 0, 1e6, "steps"), .standard = "10",
     .about = "in a row whose loss or gradient is not finite, behind which it goes back to its "
              "newest checkpoint; 0: it never does"},
    {AT(job_elastic, replan, FIELD_BOOLEAN), .standard = "true",
     .about = "may executors go on under another plan? Else the job begins again at a checkpoint"},
    {.key = NULL},
};

static const struct field eval_fields[] = {
    {INTEGER(job_eval, every, 1, 1e9, "steps"),
     .about = "between evaluations on data that is held out; never unless given"},
    {REAL(job_eval, holdout, 0, 0.9), .standard = "0",
     .about = "the share of the data that is never trained on"},
    {INTEGER(job_eval, sample, 0, 1e6, "bytes"), .standard = "0",
     .about = "that the model writes at the end; for data.text alone"},
    {.key = NULL},
};

static const struct field checkpoint_fields[] = {
    {AT(job_checkpoint, dir, FIELD_TEXT),
     .about = "on every node, and shared by all nodes of the job; none are made unless given"},
    {INTEGER(job_checkpoint, every, 1, 1e9, "steps"),
     .about = "between checkpoints; behind the last step alone unless given"},
    {INTEGER(job_checkpoint, keep, 1, 1e6, "checkpoints"),
     .about = "the newest ones; 3 unless given"},
    {.key = NULL},
};

const struct field job_config_fields[] = {
    {.key = "apiVersion",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct job_config, api_version),
     .required = true,
     .words = versions,
     .about = "of this file"},
    {AT(job_config, name, FIELD_TEXT), .required = true,
     .about = "letters, digits, '-', '_' and '.'; of folders and tables too"},
    {AT(job_config, model, FIELD_SECTION), .required = true, .fields = model_fields,
     .about = "what is trained"},
    {AT(job_config, data, FIELD_SECTION), .required = true, .fields = data_fields,
     .about = "what it learns from: one of the three"},
    {AT(job_config, train, FIELD_SECTION), .required = true, .fields = train_fields,
     .about = "how it learns"},
    {AT(job_config, devices, FIELD_SECTION), .fields = devices_fields,
     .about = "how many it may have"},
    {AT(job_config, plan, FIELD_SECTION), .fields = plan_fields,
     .about = "what may be decided about how it is divided"},
    {AT(job_config, elastic, FIELD_SECTION), .fields = elastic_fields,
     .about = "what happens when devices are lost or come"},
    {AT(job_config, eval, FIELD_SECTION), .fields = eval_fields, .about = "how good it has become"},
    {AT(job_config, checkpoint, FIELD_SECTION), .fields = checkpoint_fields,
     .about = "what is kept on disk"},
    {.key = NULL},
};

static int read_job(const struct document *document, struct job_config **out, struct error *err)
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
    rc = read_job(document, out, err);
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
    rc = read_job(document, out, err);
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

void job_config_destroy(struct job_config *job)
{
    if (!job)
        return;
    fields_clear(job_config_fields, job);
    free(job);
}

char *job_config_print(const struct job_config *job)
{
    return fields_print(job_config_fields, job);
}
