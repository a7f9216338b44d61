/* trainer.h - one rank of a job from its first step to its last.
 *
 * Steps, evaluations on held-out data, and at the end a sample of text if the job wants one.
 * What happens is told to a reporter; every rank computes the same losses, and each rank tells
 * its own instructions' times. Between two steps the ranks may be made to pause: the wish of one
 * of them reaches all in the metrics of the step, so that they stop behind the same one. What
 * they hold stays as it is, and no step is another for it.
 *
 * The state comes from what the ranks have kept of an earlier epoch, else from a checkpoint or,
 * without one, from weights that the job names or from the seed; it goes to a checkpoint behind
 * every checkpoint.every steps and behind the last one, which is where one of the ranks was asked
 * to stop, if that comes first. When an epoch breaks off, the state stays with the executor. */
#ifndef WORKER_TRAINER_TRAINER_H
#define WORKER_TRAINER_TRAINER_H

#include "common/config/job.h"
#include "worker/checkpoint/saver.h"
#include "worker/data/data.h"
#include "worker/interpreter/interpreter.h"
#include "worker/pretrained/pretrained.h"
#include "worker/trainer/kept.h"

/* An evaluation looks at so many batches of the held-out data, the first ones, or all. */
#define EVALUATION_BATCHES_MAX 16
/* Steps between two reports of instruction times, or seconds if these are over first. */
#define TIMES_EVERY 50
#define TIMES_EVERY_S 3
/* The instructions of such a step are told one by one, by all ranks of the same one: of the powers
 * of two up to here, and of every step that it divides. */
#define TRACE_EVERY 256

/* What a rank begins with. */
struct beginning {
    enum move_source source;
    uint64_t step;          /* finished */
    double prepare_s;       /* lowering, memory, groups */
    double fill_s;          /* until the state was complete */
    uint64_t bytes_arrived; /* from other ranks */
    bool inherited;         /* what an executor before this one had left was there */
    uint64_t bytes_copied;  /* host memory for copies of what only one node holds */
};

/* All optional. */
struct reporter {
    void *context;
    /* Its state is complete. */
    void (*begun)(void *context, int rank, const struct beginning *beginning);
    /* Prepared; the first step may begin when it returns 0. */
    int (*ready)(void *context, int rank, uint64_t program_hash, struct error *err);
    /* Asked before each step: shall all ranks pause behind it, once more than they did `pauses`
     * times? */
    bool (*wants_pause)(void *context, uint64_t pauses);
    /* Asked before each step: shall all ranks stop behind it for good, with a checkpoint? */
    bool (*wants_stop)(void *context);
    /* Asked before each step: is no further one wanted? A rank that is alone waits in no fabric
     * that could be aborted. */
    bool (*is_over)(void *context);
    /* All ranks have paused behind this step, for the time `number`; they go on when it returns
     * 0, and stop with a checkpoint, all of them, when it returns 1. */
    int (*paused)(void *context, int rank, uint64_t step, uint64_t number, struct error *err);
    /* So much host memory is reserved for the copy of a checkpoint. */
    void (*reserved)(void *context, int rank, uint64_t bytes);
    void (*step)(void *context, int rank, uint64_t step, const struct step_result *result,
                 double seconds);
    void (*evaluation)(void *context, int rank, uint64_t step, double loss, double targets);
    /* Seconds in `steps` steps of all instructions of one class in blocks of one type, and what
     * was predicted of them; 0: nothing. */
    void (*times)(void *context, int rank, const char *block_type, const char *instruction,
                  uint64_t steps, double seconds, double predicted_s);
    /* When each instruction of a training step began and ended, in order; `total` it has. */
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
    const struct collectives *collectives; /* of what is in the host's memory; */
    struct fabric *fabric;
    const struct collectives *program_collectives; /* and in the device's, where that has its own */
    struct fabric *program_fabric;
    const struct data_source *data;
    const struct pretrained *pretrained; /* weights for a job that begins anew; NULL: the seed's */
    const struct reporter *reporter;
    uint64_t epoch;
    const char *start;         /* folder of the newest checkpoint; NULL: none */
    struct move_age start_age; /* finished in it, and by which epoch */
    struct kept *kept;         /* what this executor has kept, and will keep; NULL: nothing */
    int givers;             /* ranks behind those of the plan, that only give what they have kept */
    struct fabric *meeting; /* of all of them; not used without givers */
    const char *const *nodes; /* of each rank, where something is kept; lent */
    uint64_t copy_every;      /* steps between copies for the loss of a node; 0: none are made */
    /* Where checkpoints go; its program is filled in here. NULL: none are written. */
    const struct saver_config *saving;
    struct trail *trail; /* NULL: nobody reads how far it is */
    /* So many steps in a row that are not finite end it; 0: none do, or somebody else counts. */
    uint64_t max_skipped;
    double compute_s; /* that a step's kernels are predicted to take; 0: not known */
    uint64_t hash;    /* of the program, as the planner has it; 0: not checked */
};

struct optimizer trainer_optimizer(const struct job_config *job);
/* When it ends with an error, what is worth it is in config->kept.
 * -ECANCELED: it was asked to stop, and in words where; -EDOM: max_skipped steps changed nothing;
 * -EBADMSG: the checkpoint cannot be loaded; -EPROTO: the program that was lowered here is another
 * than the planner's (another version of Gimbal); errors of preparing and of the fabric. */
int trainer_run(const struct trainer_config *config, struct error *err);
/* The rank is one of those that only give: it returns when the others may begin. */
int trainer_give(const struct trainer_config *config, struct error *err);

#endif
