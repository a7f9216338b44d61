/* job.h - one job: what was asked for, where it stands and why.
 *
 *    PENDING -granted-> PLANNING -planned-> STARTING -ready-> RUNNING -all exited with 0-> DONE
 *    PLANNING -infeasible on these devices, a worker lost, or drained-> PENDING
 *    PLANNING -no plan on any-> FAILED
 *    RUNNING -held-> PAUSING -all paused-> PAUSED -not held-> RUNNING
 *    PLANNING -held-> PENDING
 *    PAUSED -to give its devices back, and saved-> RELEASING -all gone-> PENDING
 *    STARTING to PAUSED -a rank failed, or its worker was lost-> FAILING; or -> REPLANNING
 *    REPLANNING -all have left, and worth another try-> PENDING, else -> FAILED
 *    FAILING -all gone, and worth another try-> PENDING, else -> FAILED
 *    STARTING to PAUSED -cancel-> CANCELLING -all gone-> CANCELLED
 *    FAILING, REPLANNING, RELEASING -cancel-> CANCELLING
 *    PENDING, PLANNING -cancel-> CANCELLED
 *
 * A user may hold a job and let it go at any time. Holding is a mark on the record, which the
 * states follow as soon as they can. A held job that is PENDING is granted nothing and keeps nobody
 * waiting; one that is starting pauses after its first step. A paused job keeps its devices; if it
 * loses one of them, it moves and pauses there. If it is to give its devices back, it does so once
 * the last step that it has finished is a listed checkpoint, from which it continues when it is let
 * go.
 *
 * FAILING, CANCELLING and RELEASING wait until every executor is gone; only then are the devices
 * free. In REPLANNING executors leave the epoch and stay where they are with their state; the job
 * comes before all others when devices are granted, and first gets back those that it had. */
#ifndef COORDINATOR_JOBS_JOB_H
#define COORDINATOR_JOBS_JOB_H

#include "coordinator/membership/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ID_SIZE HOLDER_SIZE
#define JOB_WORDS_SIZE 512
#define JOB_PLAN_SIZE 64
#define JOB_TEXT_SIZE 262144 /* of a job file, including the final NUL */

enum job_state {
    JOB_NEW, /* not accepted yet; never visible */
    JOB_PENDING,
    JOB_PLANNING,
    JOB_STARTING,
    JOB_RUNNING,
    JOB_PAUSING,
    JOB_PAUSED,
    JOB_RELEASING,
    JOB_CANCELLING,
    JOB_FAILING,
    JOB_REPLANNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATES
};

enum job_reason {
    JOB_REASON_NONE,
    JOB_REASON_NO_DEVICES,         /* no worker offers a device that it may use */
    JOB_REASON_TOO_FEW_DEVICES,    /* even the whole cluster, idle, would not suffice */
    JOB_REASON_DEVICES_BUSY,       /* the cluster suffices, but others hold it; this job is next */
    JOB_REASON_WAITING_FOR_OTHERS, /* an earlier job is next */
    JOB_REASON_HELD,               /* a user has paused it */
    JOB_REASON_INFEASIBLE_MEMORY,  /* it needs more devices than it was granted or may have */
    JOB_REASON_RESTART,            /* it broke and starts again, from a checkpoint if it has one */
    JOB_REASON_REPLAN,             /* somebody wants it on other devices */
    JOB_REASON_PLAN_REFUSED,       /* no plan on any number of devices */
    JOB_REASON_PROGRAM_REFUSED,    /* a rank lowered a different program than was planned */
    /* no rank could read the data, or one read other data than the first rank */
    JOB_REASON_DATA_REFUSED,
    JOB_REASON_NO_SPACE,  /* all is done, and there is no room for the last step's checkpoint */
    JOB_REASON_NOT_SAVED, /* likewise, and it cannot be written for another reason */
    JOB_REASON_CHECKPOINT_DAMAGED, /* a rank could not load the checkpoint it was to start from */
    JOB_REASON_RANK_FAILED,
    JOB_REASON_RANK_STALLED,  /* a rank held up the others and was terminated */
    JOB_REASON_NOT_FINITE,    /* too many consecutive steps without a finite loss or gradient */
    JOB_REASON_OUT_OF_MEMORY, /* a rank's device has less memory than its plan needs */
    JOB_REASON_PEER_LOST,     /* a rank gave up on another one, of which nothing is known yet */
    JOB_REASON_WORKER_LOST,
    JOB_REASON_CANCELLED,
    JOB_REASONS
};

/* The kind of devices a job uses; kinds are never mixed. */
enum job_kind { JOB_ANY, JOB_CPU, JOB_GPU };

enum job_rank_state {
    JOB_RANK_WAITING, /* granted, but its executor is not ready */
    JOB_RANK_READY,
    JOB_RANK_PAUSED,
    JOB_RANK_EXITED,
    /* its worker is lost, and with it the device, whether the rank ran or had exited */
    JOB_RANK_LOST,
};

/* The purpose of a rank. */
enum job_rank_role {
    JOB_RANK_TRAINS,
    JOB_RANK_STAYED, /* granted to the job again, and its executor there may have stayed */
    /* stayed, but the plan does not use its device: it hands its state over, is ordered behind the
     * ranks that train, and leaves once they run */
    JOB_RANK_GIVES,
};

struct job_rank {
    struct device_ref device;
    enum job_rank_role role;
    enum job_rank_state state;
    int status; /* valid once exited: the exit code, or 128 + the signal */
};

/* What a user submits; the caller has read and checked the job file. */
struct job_submission {
    /* identifies the submission: the same key again yields the same job; "" for none */
    const char *key;
    const char *name, *user;
    const char *text;  /* the job file */
    const char *given; /* (optional) JSON of a plan that came with it; NULL is "" */
    /* (optional) the devices this plan names, one line per rank: the job gets exactly these; NULL
     * is "" */
    const char *named;
    unsigned devices_min, devices_max; /* 1 <= min <= max */
    enum job_kind kind;
    uint64_t steps;        /* number of steps to train */
    unsigned restarts_max; /* how often it may restart without getting further */
    bool replans;          /* its executors survive an epoch that breaks */
    /* (optional) folder of the checkpoint that it goes on from, and the steps and samples that were
     * finished there; NULL is "" */
    const char *origin;
    uint64_t origin_step, origin_samples;
    bool origin_weights; /* it begins at step 0, with the weights of that checkpoint */
    /* (optional) where it is saved if its job file names no folder; NULL is "" */
    const char *saves_in;
};

/* Lent by the functions of jobs.h; read-only for callers. */
struct job {
    char id[JOB_ID_SIZE]; /* "j-1" */
    uint64_t number;      /* order of submission */
    char *key, *name, *user, *text, *given, *named;
    /* What it goes on from, as in struct job_submission: with the weights only, both are 0. */
    char *origin;
    uint64_t origin_step, origin_samples;
    bool origin_weights;
    char *saves_in; /* where it is saved if its job file names no folder; "": nowhere */
    unsigned devices_min, devices_max;
    unsigned devices_needed; /* devices_min, or more once the planner demanded it */
    enum job_kind kind;

    enum job_state state;
    enum job_reason reason;
    char words[JOB_WORDS_SIZE]; /* the reason as a sentence; may be "" */
    uint32_t epoch;             /* number of the current plan, from 1; 0: before the first */
    char plan[JOB_PLAN_SIZE];   /* id of the plan; "" if there is none yet */
    char held[JOB_WORDS_SIZE];  /* who paused it and why; "": nobody */
    bool releases;              /* paused, and shall give its devices back */
    uint32_t pauses, resumes;   /* pauses of this epoch that have begun, and that are over */
    bool saves;                 /* cancelled or leaving a node: its executors save first */
    bool holding;               /* it holds the devices of its ranks */
    bool replans;               /* executors survive an epoch that breaks */
    bool finished;              /* a rank of this epoch has said that nothing is left to do */
    /* In the order of the grant, and then of the plan; kept after the job has ended and, if
     * executors have stayed, while it waits. */
    struct job_rank *ranks;
    size_t rank_count;

    /* Consecutive restarts, and faults of ranks by themselves, since the job last got further than
     * it had when it broke. */
    unsigned restarts, restarts_max, faults;
    uint64_t reached_step; /* the furthest step at which it broke */
    uint64_t began_step;   /* the step after which this epoch began; not stored */
    uint64_t broke_step;   /* the newest step of the last epoch that broke; not stored */
    bool step_is_old;      /* it comes from a store, and was not heard of since; not stored */
    /* the number of consecutive newest steps that were not finite, and the first of them; not
     * stored */
    uint64_t skipped, skipped_from;
    /* which restart or replan this is, and why, until the job runs; "": none */
    char again[JOB_WORDS_SIZE];
    char broke[JOB_WORDS_SIZE];   /* only why, as known when it started again; not stored */
    enum job_reason broke_reason; /* the corresponding reason; not stored */

    /* The newest listed checkpoint and the epoch that wrote it; step 0: none. */
    uint64_t checkpoint_step;
    uint32_t checkpoint_epoch;

    uint64_t step, steps;
    double loss;         /* of that step; NaN: unknown */
    double tokens_per_s; /* of the newest steps; of an ended job, of all of them; 0: unknown */
    uint64_t run_tokens; /* of the steps that were heard of, repeated ones too, and */
    double run_s;        /* the time that they took */
    uint64_t submitted_ms, started_ms, ended_ms; /* 0: not yet; started: when it first ran */
};

struct job *job_copy(const struct job *job);
void job_destroy(struct job *job);

/* Whether it was submitted with this job file and plan, as a submission with the same key has to
 * be. */
bool job_is_of(const struct job *job, const struct job_submission *submission);

/* The step that it starts from if no memory has a newer one: that of its newest listed checkpoint,
 * or of the one that it went on from, or 0. */
uint64_t job_saved_step(const struct job *job);

/* Whether it is done, failed or cancelled: then nothing changes any more. */
bool job_ended(const struct job *job);

/* The devices that the job has a right to, while it holds any: those of all ranks whose worker is
 * not lost and that have not handed everything over. Returns their number; `out` has room for
 * rank_count. */
size_t job_devices(const struct job *job, struct device_ref *out);
/* The number of ranks of the plan, which come first. */
size_t job_trainers(const struct job *job);
/* Whether one of them is on this device. */
bool job_trains_on(const struct job *job, const struct device_ref *device);
/* Whether it waits, and executors of its last epoch may have stayed. */
bool job_left_executors(const struct job *job);

/* Names as shown: "PENDING"; "WaitingForOthers"; "cpu". */
const char *job_state_name(enum job_state state);
const char *job_reason_name(enum job_reason reason);
const char *job_kind_name(enum job_kind kind);

#endif
