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
 * A user may hold a job and let it go at any time: that is a mark on the record, and the states
 * follow it as soon as they can. A held job that is PENDING is granted nothing and keeps nobody
 * waiting; one that starts pauses behind its first step; one that is paused keeps its devices, and
 * where it loses one of them it moves and pauses there; unless it is to give them back: then it
 * does so once the step that it is behind is a listed checkpoint, from which it begins when it was
 * let go.
 * FAILING, CANCELLING and RELEASING wait until every executor is gone; only then are the devices
 * free. In REPLANNING executors leave the epoch and stay where they are with their state; the job
 * comes before all others when devices are granted, and first of all gets back those that it had.
 */
#ifndef COORDINATOR_JOBS_JOB_H
#define COORDINATOR_JOBS_JOB_H

#include "coordinator/membership/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ID_SIZE HOLDER_SIZE
#define JOB_WORDS_SIZE 512
#define JOB_PLAN_SIZE 64
#define JOB_TEXT_SIZE 262144 /* of a job file, with its final NUL */

enum job_state {
    JOB_NEW, /* not yet accepted; nobody sees it */
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
    JOB_REASON_TOO_FEW_DEVICES,    /* even the whole cluster, idle, would not do */
    JOB_REASON_DEVICES_BUSY,       /* the cluster would do, but others hold it; it is next */
    JOB_REASON_WAITING_FOR_OTHERS, /* an earlier job is next */
    JOB_REASON_HELD,               /* somebody wants it not to run */
    JOB_REASON_INFEASIBLE_MEMORY,  /* it needs more devices than it was granted, or may have */
    JOB_REASON_RESTART,            /* it broke, and begins again: from a checkpoint if it has one */
    JOB_REASON_REPLAN,             /* somebody wants it on other devices */
    JOB_REASON_PLAN_REFUSED,       /* no plan on any number of devices */
    JOB_REASON_PROGRAM_REFUSED,    /* a rank lowered another program than was planned */
    JOB_REASON_DATA_REFUSED,       /* no rank could read them, or not what the first one did */
    JOB_REASON_CHECKPOINT_DAMAGED, /* a rank could not load what it was to begin from */
    JOB_REASON_RANK_FAILED,
    JOB_REASON_RANK_STALLED,  /* a rank held up the others, and was ended */
    JOB_REASON_NOT_FINITE,    /* too many steps in a row had no finite loss or gradient */
    JOB_REASON_OUT_OF_MEMORY, /* a rank's device has less than its plan wants of it */
    JOB_REASON_PEER_LOST,     /* a rank gave up on another, of which nothing was heard yet */
    JOB_REASON_WORKER_LOST,
    JOB_REASON_CANCELLED,
    JOB_REASONS
};

/* Which devices a job takes; never a mix. */
enum job_kind { JOB_ANY, JOB_CPU, JOB_GPU };

enum job_rank_state {
    JOB_RANK_WAITING, /* granted, its executor not ready */
    JOB_RANK_READY,
    JOB_RANK_PAUSED,
    JOB_RANK_EXITED,
    JOB_RANK_LOST, /* its worker is, and with it the device, whether it ran or had exited */
};

/* What a rank is for. */
enum job_rank_role {
    JOB_RANK_TRAINS,
    JOB_RANK_STAYED, /* granted again to the job, whose executor there may have stayed */
    JOB_RANK_GIVES,  /* stayed, and the plan has no use for its device: it gives its state, behind
                        those that train, and leaves once they go */
};

struct job_rank {
    struct device_ref device;
    enum job_rank_role role;
    enum job_rank_state state;
    int status; /* once exited: the exit code, or 128 + the signal */
};

/* What a user submits; the job file was read and checked by the caller. */
struct job_submission {
    const char *key; /* of this submission: the same key again is the same job; "" for none */
    const char *name, *user;
    const char *text;  /* the job file */
    const char *given; /* (optional) JSON of the plan that came with it; NULL is "" */
    const char *named; /* (optional) devices that this plan names, a line for each rank: it gets
                          these and no others; NULL is "" */
    unsigned devices_min, devices_max; /* 1 <= min <= max */
    enum job_kind kind;
    uint64_t steps;        /* that it is to train */
    unsigned restarts_max; /* so often it may begin again without getting further */
    bool replans;          /* its executors outlive an epoch that breaks */
};

/* Lent by the functions of jobs.h; read it, never write it. */
struct job {
    char id[JOB_ID_SIZE]; /* "j-1" */
    uint64_t number;      /* the order of submission */
    char *key, *name, *user, *text, *given, *named;
    unsigned devices_min, devices_max;
    unsigned devices_needed; /* min, or more once the planner said so */
    enum job_kind kind;

    enum job_state state;
    enum job_reason reason;
    char words[JOB_WORDS_SIZE]; /* the reason as a sentence; may be "" */
    uint32_t epoch;             /* counts plans, from 1; 0 before the first */
    char plan[JOB_PLAN_SIZE];   /* its id; "" before there is one */
    char held[JOB_WORDS_SIZE];  /* who wants it not to run, and why; "": nobody does */
    bool releases;              /* held, and to give its devices back */
    uint32_t pauses, resumes;   /* of this epoch, that have begun and that are over */
    bool saves;                 /* cancelled, or leaving a node: its executors save first */
    bool holding;               /* the devices of its ranks are its own */
    bool replans;               /* executors outlive an epoch that breaks */
    /* In the order of grant, then of the plan; kept when it ended, and, where executors have
     * stayed, while it waits. */
    struct job_rank *ranks;
    size_t rank_count;

    /* Restarts, and faults of ranks by themselves, in a row: since it got further than it had when
     * it broke before. */
    unsigned restarts, restarts_max, faults;
    uint64_t reached_step;          /* the furthest when it broke */
    uint64_t began_step;            /* of this epoch, behind which it began; not stored */
    uint64_t broke_step;            /* the newest of the last one that broke; not stored */
    uint64_t skipped, skipped_from; /* the newest steps, that were not finite: how many in a row,
                                       and the first of them; not stored */
    char again[JOB_WORDS_SIZE];     /* which restart or replan, and why, until it runs; "": none */
    char broke[JOB_WORDS_SIZE];     /* why alone, as known when it began again; not stored */
    enum job_reason broke_reason;   /* its reason; not stored */

    /* The newest that is listed, and the epoch that wrote it; 0: none. */
    uint64_t checkpoint_step;
    uint32_t checkpoint_epoch;

    uint64_t step, steps;
    double loss, tokens_per_s;                   /* meaningful once step > 0 */
    uint64_t submitted_ms, started_ms, ended_ms; /* 0 when not yet; started: first running */
};

struct job *job_copy(const struct job *job);
void job_destroy(struct job *job);

/* Was it submitted with this job file, and this plan? What comes with the same key has to be. */
bool job_is_of(const struct job *job, const struct job_submission *submission);

/* Done, failed or cancelled: nothing changes any more. */
bool job_ended(const struct job *job);

/* The devices that the job has a right to: of all its ranks whose worker is not lost, and that have
 * not given all, while it holds any. out has room for rank_count. */
size_t job_devices(const struct job *job, struct device_ref *out);
bool job_rank_holds(const struct job_rank *rank);
/* Ranks of the plan, which come first. */
size_t job_trainers(const struct job *job);
/* One of them is on this device. */
bool job_trains_on(const struct job *job, const struct device_ref *device);
/* It waits, and executors of its last epoch may have stayed. */
bool job_left_executors(const struct job *job);

/* "PENDING"; "WaitingForOthers"; "cpu". */
const char *job_state_name(enum job_state state);
const char *job_reason_name(enum job_reason reason);
const char *job_kind_name(enum job_kind kind);

#endif
