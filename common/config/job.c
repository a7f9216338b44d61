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
static const char *const objectives[] = {"throughput", "devices", "frontier", NULL};
static const char *const zero_stages[] = {"0", "1", "2", "3", NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};

static const struct field model_fields[] = {
    {AT(job_model, family, FIELD_TEXT), .required = true},
    {INTEGER(job_model, layers, 1, 10000, "layers"), .required = true},
    {INTEGER(job_model, hidden, 1, 1048576, "features"), .required = true},
    {INTEGER(job_model, heads, 1, 65536, "heads"), .required = true},
    {INTEGER(job_model, seq, 1, 16777216, "tokens"), .required = true},
    {INTEGER(job_model, vocab, 2, 16777216, "tokens")},
    {INTEGER(job_model, ffn, 1, 16777216, "features")},
    {INTEGER(job_model, kv_heads, 1, 65536, "heads")},
    {INTEGER(job_model, patch, 1, 4096, "pixels")},
    {.key = NULL},
};

static const struct field data_fields[] = {
    {AT(job_data, text, FIELD_TEXTS)},
    {AT(job_data, tokens, FIELD_TEXTS)},
    {AT(job_data, images, FIELD_TEXTS)},
    {.key = NULL},
};

static const struct field train_fields[] = {
    {INTEGER(job_train, steps, 1, 1e9, "steps"), .required = true},
    {INTEGER(job_train, global_batch, 1, 1e9, "samples"), .required = true},
    {REAL(job_train, lr, 0, 100), .required = true, .above = true},
    {INTEGER(job_train, warmup, 0, 1e9, "steps"), .standard = "0"},
    {REAL(job_train, weight_decay, 0, 100), .standard = "0.1"},
    {REAL(job_train, clip, 0, 1e6), .standard = "1.0"},
    {AT(job_train, dtype, FIELD_CHOICE), .standard = "f32", .words = dtypes},
    {INTEGER(job_train, seed, 0, 0x1p53, FIELD_NO_UNIT), .standard = "1"},
    {REAL(job_train, beta1, 0, 1), .standard = "0.9", .below = true},
    {REAL(job_train, beta2, 0, 1), .standard = "0.95", .below = true},
    {REAL(job_train, epsilon, 0, 1), .standard = "1e-8", .above = true},
    {.key = NULL},
};

static const struct field devices_fields[] = {
    {INTEGER(job_devices, min, 1, 1000000, "devices"), .standard = "1"},
    {INTEGER(job_devices, max, 1, 1000000, "devices")},
    {.key = NULL},
};

static const struct field pin_fields[] = {
    {INTEGER(job_pin, dp, 1, 1000000, "devices")},
    {INTEGER(job_pin, tp, 1, 1000000, "devices")},
    {INTEGER(job_pin, pp, 1, 1000000, "stages")},
    {INTEGER(job_pin, micro_batches, 1, 1000000, "micro-batches")},
    {.key = NULL},
};

static const struct field forbid_fields[] = {
    {AT(job_forbid, roles, FIELD_TEXTS)},
    {AT(job_forbid, zero, FIELD_CHOICES), .words = zero_stages},
    {AT(job_forbid, recompute, FIELD_CHOICES), .words = recomputes},
    {.key = NULL},
};

static const struct field plan_fields[] = {
    {AT(job_plan, objective, FIELD_CHOICE), .standard = "throughput", .words = objectives},
    {AT(job_plan, memory, FIELD_SIZE), .least = 0x1p20, .greatest = 0x1p50},
    {AT(job_plan, search, FIELD_TEXT)},
    {AT(job_plan, schedule, FIELD_TEXT)},
    {AT(job_plan, overlap, FIELD_BOOLEAN), .standard = "true"},
    {AT(job_plan, pin, FIELD_SECTION), .fields = pin_fields},
    {AT(job_plan, forbid, FIELD_SECTION), .fields = forbid_fields},
    {.key = NULL},
};

static const struct field elastic_fields[] = {
    {INTEGER(job_elastic, copy_every, 0, 1e6, "steps"), .standard = "1"},
    {AT(job_elastic, orphan, FIELD_DURATION), .standard = "10m", .least = 1,
     .greatest = 7 * 24 * 3600},
    {AT(job_elastic, stall, FIELD_DURATION), .standard = "10s", .least = 2,
     .greatest = 7 * 24 * 3600},
    {INTEGER(job_elastic, max_restarts, 0, 1e6, "restarts"), .standard = "20"},
    {AT(job_elastic, replan, FIELD_BOOLEAN), .standard = "true"},
    {.key = NULL},
};

static const struct field eval_fields[] = {
    {INTEGER(job_eval, every, 1, 1e9, "steps")},
    {REAL(job_eval, holdout, 0, 0.9), .standard = "0"},
    {INTEGER(job_eval, sample, 0, 1e6, "bytes"), .standard = "0"},
    {.key = NULL},
};

static const struct field checkpoint_fields[] = {
    {AT(job_checkpoint, dir, FIELD_TEXT)},
    {INTEGER(job_checkpoint, every, 1, 1e9, "steps")},
    {INTEGER(job_checkpoint, keep, 1, 1e6, "checkpoints")},
    {.key = NULL},
};

const struct field job_config_fields[] = {
    {.key = "apiVersion",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct job_config, api_version),
     .required = true,
     .words = versions},
    {AT(job_config, name, FIELD_TEXT), .required = true},
    {AT(job_config, model, FIELD_SECTION), .required = true, .fields = model_fields},
    {AT(job_config, data, FIELD_SECTION), .required = true, .fields = data_fields},
    {AT(job_config, train, FIELD_SECTION), .required = true, .fields = train_fields},
    {AT(job_config, devices, FIELD_SECTION), .fields = devices_fields},
    {AT(job_config, plan, FIELD_SECTION), .fields = plan_fields},
    {AT(job_config, elastic, FIELD_SECTION), .fields = elastic_fields},
    {AT(job_config, eval, FIELD_SECTION), .fields = eval_fields},
    {AT(job_config, checkpoint, FIELD_SECTION), .fields = checkpoint_fields},
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
