/* job.h - the job file: what to train, on what, and what may be decided about it.
 *
 * The fields carry the names of the file's keys. Optional numbers without a default are 0 and
 * optional texts NULL when the file does not give them. Ranges and fields that contradict each
 * other are refused here; what only the model, the plan or the data can know (do the heads
 * divide the hidden size, is there such a search) is theirs to check. */
#ifndef COMMON_CONFIG_JOB_H
#define COMMON_CONFIG_JOB_H

#include "common/base/error.h"
#include "common/config/fields.h"

#include <stddef.h>
#include <stdint.h>

enum job_dtype { JOB_F32, JOB_BF16 };
enum job_objective {
    JOB_THROUGHPUT, /* the fastest plan that fits */
    JOB_DEVICES,    /* the plan with the fewest devices that fits */
    JOB_FRONTIER,   /* the fastest, and what can be had for less memory or fewer devices */
};

/* As config.json of transformers has them. */
enum job_rope_type {
    JOB_ROPE_DEFAULT, /* positions turn by rope_theta alone */
    JOB_ROPE_LINEAR,  /* all slower, by factor */
    JOB_ROPE_LLAMA3,  /* slow ones slower, by factor */
};

extern const char *const job_rope_types[];

struct job_rope_scaling {
    int rope_type; /* enum job_rope_type */
    double factor;
    /* Of llama3; 1, 4 and 8192 unless given. */
    double low_freq_factor, high_freq_factor;
    int64_t original_max_position_embeddings;
};

struct job_model {
    char *family; /* a member of common/models */
    int64_t layers, hidden, heads;
    int64_t seq;                     /* tokens per sample */
    int64_t vocab;                   /* 256 for text unless given */
    int64_t ffn;                     /* the family's usual multiple of hidden unless given */
    int64_t head_dim;                /* features of a head; hidden / heads unless given */
    int64_t kv_heads;                /* heads of keys and values; as many as heads unless given */
    int64_t patch;                   /* pixels: the edge of a patch of an image */
    double norm_epsilon, rope_theta; /* 0: 1e-5, and 10000 */
    struct job_rope_scaling rope_scaling;
    enum answer tied; /* is the embedding's table the head's weight as well? */
    char *weights;    /* a folder of weights to begin from; NULL: they are drawn */
};

/* One of the three; paths as they were written. */
struct job_data {
    struct texts text;   /* files and directories, every byte a token */
    struct texts tokens; /* files of token ids */
    struct texts images; /* directories, one per class */
};

struct job_train {
    int64_t steps;
    int64_t global_batch; /* samples per step */
    double lr;
    int64_t warmup; /* steps */
    double weight_decay;
    double clip; /* the gradient's largest norm; 0: not clipped */
    enum job_dtype dtype;
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
    char *schedule;  /* a member of common/plan/schedules; NULL: the planner decides */
    bool overlap;    /* communication may go beside computing */
    struct job_pin pin;
    struct job_forbid forbid;
};

struct job_elastic {
    int64_t copy_every; /* steps between in-memory copies, at least; 0: none are made */
    double copy_share;  /* of a step's time that they may take; 0: however long they take */
    double orphan;      /* seconds of training without a coordinator */
    double stall;       /* seconds in one place after which a rank holds up the others */
    int64_t max_restarts;
    int64_t max_skipped; /* steps in a row that are not finite; 0: as many as there are */
    bool replan;         /* executors outlive an epoch that breaks, and keep its state in memory */
};

struct job_eval {
    int64_t every;  /* steps; 0: never */
    double holdout; /* fraction of the data that is never trained on */
    int64_t sample; /* bytes of text to generate after the last step; byte-level models only */
};

#define CHECKPOINTS_KEPT 3
struct job_checkpoint {
    char *dir;     /* NULL: no checkpoints */
    int64_t every; /* steps; 0: only the last */
    int64_t keep;  /* checkpoints; CHECKPOINTS_KEPT unless given */
};

struct job_config {
    int api_version; /* index of the only version there is */
    char *name;
    struct job_model model;
    struct job_data data;
    struct job_train train;
    struct job_devices devices;
    struct job_plan plan;
    struct job_elastic elastic;
    struct job_eval eval;
    struct job_checkpoint checkpoint;
};

/* Read a job file. -errno when it cannot be read, -EINVAL with file:line:column, key, value and
 * what would be right. */
int job_config_load(const char *path, struct job_config **out, struct error *err);
/* The same from size bytes of text, which errors call name. */
int job_config_parse(const char *text, size_t size, const char *name, struct job_config **out,
                     struct error *err);
/* Put a place before a sentence about this job, as errors of parsing have it: that of the field
 * which the sentence begins with ("model.heads 5 does not divide"), or of the section around it;
 * the name alone before a sentence that begins otherwise.
 */
void job_config_place(const char *text, size_t size, const char *name, struct error *err);
/* NULL is fine. */
void job_config_destroy(struct job_config *job);
/* The job as YAML with every default written out, yours to free; parsing it gives an equal job. */
char *job_config_print(const struct job_config *job);

/* The table behind it all, for help texts and tests. */
extern const struct field job_config_fields[];

#endif
