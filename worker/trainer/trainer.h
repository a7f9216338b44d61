/* trainer.h - trains one rank of a job, from its first step to its last.
 *
 * This covers steps, evaluation on held-out data, checkpoints and, at the end, a sample of text if
 * the job wants one. A reporter is told what happens: every rank computes the same losses, and
 * reports the times of its own instructions.
 *
 * Ranks pause together: a request to one of them reaches all through the metrics of the next step,
 * so that all stop after the same one, or after the same batch of an evaluation. Pausing does not
 * change the state or any later step.
 *
 * The state comes from what the ranks have kept of an earlier epoch, else from a checkpoint, which
 * may be another job's, else from weights (of a checkpoint, or pretrained ones that the job names)
 * or from the seed. It is saved every checkpoint.every steps, or about every so many seconds, and
 * after the last step, or after the one at which a rank was asked to stop. When an epoch is over,
 * because it breaks off or because all steps are done, the state stays with the executor (kept.h):
 * until somebody knows that the whole job is done, another rank may need it. */
#ifndef WORKER_TRAINER_TRAINER_H
#define WORKER_TRAINER_TRAINER_H

#include "common/config/job.h"
#include "worker/checkpoint/saver.h"
#include "worker/data/data.h"
#include "worker/huggingface/pretrained.h"
#include "worker/interpreter/interpreter.h"
#include "worker/tokenizer/tokenizer.h"
#include "worker/trainer/kept.h"

/* Steps between two reports of instruction times; TIMES_EVERY_S seconds if those pass first. */
#define TIMES_EVERY 50
#define TIMES_EVERY_S 3
/* Every instruction of some steps is reported, the same steps on all ranks: powers of two below
 * this, and then every multiple of it. */
#define TRACE_EVERY 256

/* How a rank began an epoch. */
struct beginning {
    enum move_source source;
    uint64_t step;          /* steps finished before */
    double loss;            /* of the last of them; NaN: unknown */
    double prepare_s;       /* for lowering, memory, kernels and groups */
    double fill_s;          /* until the state was complete */
    uint64_t bytes_arrived; /* from other ranks */
    bool inherited;         /* an earlier executor's process had left the state */
    uint64_t bytes_copied;  /* host memory used for copies of what only one node holds */
};

/* Callbacks, each optional, called from the rank's thread. */
struct reporter {
    void *context;
    /* The rank's state is complete. */
    void (*begun)(void *context, int rank, const struct beginning *beginning);
    /* The rank is prepared. Blocks until the first step may begin: 0; or an error ends the rank. */
    int (*ready)(void *context, int rank, uint64_t program_hash, struct error *err);
    /* Asked before each step, and each batch of an evaluation: are all ranks to pause after it?
     * `pauses` is how often they have paused. */
    bool (*wants_pause)(void *context, uint64_t pauses);
    /* The same: are all ranks to stop after it for good, with a checkpoint? */
    bool (*wants_stop)(void *context);
    /* The same: is the rank not to run any more? This is for a rank that is alone,
     * which waits in no fabric that could be aborted. */
    bool (*is_over)(void *context);
    /* All ranks have paused after this step, for the `number`th time. Blocks until the pause is
     * over. Returns 0 to go on, 1 (on all ranks) to stop with a checkpoint, or an error. */
    int (*paused)(void *context, int rank, uint64_t step, uint64_t number, struct error *err);
    /* Host memory has been reserved for the copy of a checkpoint. */
    void (*reserved)(void *context, int rank, uint64_t bytes);
    void (*step)(void *context, int rank, uint64_t step, const struct step_result *result,
                 double seconds);
    void (*evaluation)(void *context, int rank, uint64_t step, double loss, double targets);
    /* Seconds that all instructions of one class took over `steps` steps, in blocks of one type,
     * and the predicted seconds; 0: no prediction. */
    void (*times)(void *context, int rank, const char *block_type, const char *instruction,
                  uint64_t steps, double seconds, double predicted_s);
    /* When each instruction of a training step began and ended, in order. `count` stamps of the
     * `total` instructions are there. */
    void (*trace)(void *context, int rank, uint64_t step, const struct stamp *stamps, size_t count,
                  size_t total);
    void (*sample)(void *context, int rank, uint64_t step, const uint8_t *text, size_t size);
};

struct trainer_config {
    const struct job_config *job;
    const struct graph *graph;
    const struct plan *plan;
    int rank;
    const struct device *device;
    const struct collectives *collectives; /* for data in host memory */
    struct fabric *fabric;
    /* For data of the program, which may lie in a device. */
    const struct collectives *program_collectives;
    struct fabric *program_fabric;
    const struct data_source *data;
    const struct pretrained *pretrained; /* weights to start a new job from; NULL: from the seed */
    const struct tokenizer *tokenizer;   /* that writes a sample at the end; NULL: there is none */
    const struct reporter *reporter;
    uint64_t epoch;
    const char *start;         /* folder of the newest checkpoint; NULL: none */
    struct move_age start_age; /* age of the state in that checkpoint */
    const char *weights;       /* folder of one whose weights step 0 begins with; NULL: none */
    const struct manifest_file *files; /* what it learns from; lent */
    size_t file_count;
    /* Step k begins with sample k * batch + shift, modulo 2^64: a job that goes on from the
     * checkpoint of another goes on in the data where that one was, whatever the batches of both.
     */
    uint64_t shift;
    struct kept *kept; /* what this executor has kept, and will keep; NULL: nothing */
    /* Number of ranks beyond those of the plan, which only give what they have kept. */
    int givers;
    struct fabric *meeting;   /* fabric of all those ranks; unused without givers */
    const char *const *nodes; /* node of each rank, if something is kept; lent */
    uint64_t copy_every;      /* steps between copies against the loss of a node; 0: none */
    /* Where checkpoints go; `program` is filled in here. NULL: none are written. */
    const struct saver_config *saving;
    double save_every_s; /* about how often it saves if the job does not count steps */
    struct trail *trail; /* where progress is recorded; NULL: nowhere */
    /* End with -EDOM after this many consecutive steps that are not finite; 0: never, or somebody
     * else counts. */
    uint64_t max_skipped;
    double compute_s; /* predicted time of a step's kernels; 0: unknown */
    uint64_t hash;    /* the planner's hash of the program; 0: not checked */
};

/* The optimizer's settings, as the job has them. */
struct optimizer trainer_optimizer(const struct job_config *job);
/* Train. Blocks until the rank has ended. Whatever is worth keeping is in config->kept then.
 * -ECANCELED: it was asked to stop, err says after which step; -ENOTRECOVERABLE: all is done, and
 * the last step could not be saved; -EDOM: max_skipped steps in a row, or all of the job, changed
 * nothing; -EBADMSG: the checkpoint cannot be loaded; -EPROTO: the program
 * that was lowered here differs from the planner's, because the versions of Gimbal differ;
 * otherwise errors of preparing (interpreter_prepare) and of the fabric. */
int trainer_run(const struct trainer_config *config, struct error *err);
/* For a rank that only gives what it has kept. Returns when the others may begin. */
int trainer_give(const struct trainer_config *config, struct error *err);

#endif
