/* job.h - the job file: what to train, on what data, and what the planner may decide.
 *
 * Members have the names of the file's keys. Where the file does not give them, optional numbers
 * without a default are 0 and optional texts NULL. Values out of range and fields that contradict
 * each other are refused here. What only the model, the plan or the data can tell (do the heads
 * divide the hidden size, is there such a search) is checked there. */
#ifndef COMMON_CONFIG_JOB_H
#define COMMON_CONFIG_JOB_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/config/document.h"
#include "common/config/fields.h"

#include <stddef.h>
#include <stdint.h>

enum job_objective {
    JOB_THROUGHPUT, /* the fastest plan that fits */
    JOB_DEVICES,    /* the plan with the fewest devices that fits */
    JOB_FRONTIER,   /* the fastest, and what can be had for less memory or fewer devices */
};

/* How rotary positions are scaled (graph/rotation.h), named as in the config.json of transformers.
 */
enum job_rope_type {
    JOB_ROPE_DEFAULT, /* not scaled: rope_theta alone */
    JOB_ROPE_LINEAR,  /* all frequencies are divided by factor */
    JOB_ROPE_LLAMA3,  /* low frequencies are divided by factor */
};

extern const char *const job_rope_types[];

struct job_rope_scaling {
    int rope_type; /* enum job_rope_type */
    double factor;
    /* llama3 only; defaults 1, 4 and 8192. */
    double low_freq_factor, high_freq_factor;
    int64_t original_max_position_embeddings;
};

struct job_model {
    const char *family; /* a member of common/models */
    int64_t layers, hidden, heads;
    int64_t seq;      /* tokens per sample */
    int64_t vocab;    /* default for text: 256 */
    int64_t ffn;      /* width of the MLP; 0: the family's usual multiple of hidden */
    int64_t head_dim; /* width of a head; 0: hidden / heads */
    int64_t kv_heads; /* key/value heads; 0: as many as heads */
    int64_t patch;    /* edge of an image patch, in pixels */
    double norm_epsilon, rope_theta; /* 0: 1e-5 and 10000 */
    struct job_rope_scaling rope_scaling;
    enum answer tied; /* is the head's weight the embedding table? */
    char *weights;    /* a folder of weights to start from; NULL: random weights */
};

#define JOB_BYTE_VOCAB 256

/* What the ids of tokens stand for. */
enum job_tokenizer {
    JOB_OTHER, /* something that we do not know */
    JOB_BYTES, /* bytes; the token after the last byte, if there is one, ends a text */
    JOB_FILE,  /* what the file data.tokenizer says */
};

/* How files of tokens are read. */
enum job_format {
    JOB_FORMAT_AUTO,   /* as their headers or their indexes say */
    JOB_FORMAT_UINT16, /* they have neither: tokens of 16 bits from the first byte on */
    JOB_FORMAT_UINT32,
};
/* Their words in a job file; ends with NULL. */
extern const char *const job_formats[];

/* Exactly one of the three is given; paths as written. */
struct job_data {
    struct texts text;   /* files and directories, every byte a token */
    struct texts tokens; /* files of token ids */
    enum job_format format;
    struct texts images; /* directories, one per class */
    /* "other"; "bytes", as it always is for text; or a tokenizer.json, or its folder. */
    char *tokenizer;
};

struct job_train {
    int64_t steps;
    int64_t global_batch; /* samples per step */
    double lr;
    int64_t warmup; /* steps */
    double weight_decay;
    double clip;        /* the largest norm of the gradient; 0: no clipping */
    enum element dtype; /* of activations, and of weights in computation */
    int64_t seed;
    double beta1, beta2, epsilon; /* Adam's */
};

struct job_devices {
    int64_t min, max; /* max 0: as many as there are */
};

struct job_pin {
    int64_t dp, tp, pp, micro_batches; /* 0: the planner decides */
};

struct job_forbid {
    struct texts roles;
    uint32_t zero;      /* bit z: zero stage z must not be used */
    uint32_t recompute; /* bit i: 0 none, 1 selective, 2 full */
};

struct job_plan {
    enum job_objective objective;
    uint64_t memory; /* bytes per device; 0: what the device has */
    char *search;    /* a member of coordinator/planner/searches; NULL: the planner chooses */
    char *schedule;  /* a row of common/plan/schedule.c; NULL: the planner decides */
    bool overlap;    /* communication may overlap with computation */
    struct job_pin pin;
    struct job_forbid forbid;
};

struct job_elastic {
    int64_t copy_every; /* least number of steps between in-memory copies; 0: no copies */
    double copy_share;  /* the share of step time that copies may take; 0: no limit */
    double orphan;      /* seconds that training goes on without a coordinator */
    double stall;       /* seconds without progress after which a rank counts as stalled */
    int64_t max_restarts;
    int64_t max_skipped; /* steps in a row that may be skipped as not finite; 0: no limit */
    bool replan;         /* executors outlive a broken epoch and keep its state in memory */
};

struct job_eval {
    int64_t every;  /* steps between evaluations; 0: never */
    double holdout; /* fraction of the data to evaluate on, never trained on */
    struct texts
        data;        /* files to evaluate on, of the kind of the job's data, instead of a holdout */
    int64_t samples; /* at most so many of them, evenly spread; 0: all */
    int64_t sample;  /* bytes of text to generate after the last step; byte-level models only */
};

/* About how often a job is saved that does not say it in steps. */
#define CHECKPOINT_EVERY_S 600.0

struct job_checkpoint {
    char *dir;       /* NULL: below the cluster's root, or ./runs without a cluster */
    int64_t every;   /* steps between checkpoints; 0: CHECKPOINT_EVERY_S. And after the last step */
    int64_t keep;    /* how many checkpoints to keep */
    double patience; /* seconds; 0: see job_saving_patience_s */
};

/* Files for other programs; NULL: none. */
struct job_log {
    char *tensorboard; /* a folder of runs */
    char *jsonl;
};

struct job_config {
    int api_version; /* always 0: there is one version */
    char *name;
    struct job_model model;
    struct job_data data;
    struct job_train train;
    struct job_devices devices;
    struct job_plan plan;
    struct job_elastic elastic;
    struct job_eval eval;
    struct job_checkpoint checkpoint;
    struct job_log log;
};

/* Read a job file. A negative errno when it cannot be read, -EINVAL with file:line:column, key,
 * value and what would be right. */
int job_config_load(const char *path, struct job_config **out, struct error *err);
/* The same from `size` bytes of text; errors call it `name`. */
int job_config_parse(const char *text, size_t size, const char *name, struct job_config **out,
                     struct error *err);
/* Prefix an error about this job with its place, as parse errors have it. If the error begins with
 * a field ("model.heads 5 does not divide ..."), that is the place of the field or of the section
 * around it; otherwise just the name. */
void job_config_place(const char *text, size_t size, const char *name, struct error *err);
/* For how many seconds saving the last step is tried, in a cluster or `alone`. */
double job_saving_patience_s(const struct job_config *job, bool alone);
/* Accepts NULL. */
void job_config_destroy(struct job_config *job);
enum job_tokenizer job_tokenizer(const struct job_config *job);
/* Whether its tokens are bytes and one more, after the last byte, which ends a text. */
bool job_ends_texts(const struct job_config *job);

/* The table of all keys, for help texts and tests. */
extern const struct field job_config_fields[];

#endif
