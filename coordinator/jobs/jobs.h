/* jobs.h - the job queue as a pure function: events and a time go in, changed jobs and actions come
 * out.
 *
 * Everything that changes a job's state is an event; its consequences are a list of actions that
 * the caller carries out in order. JOB_ACTION_STORE precedes all other actions of its job. Once a
 * job is stored, the rest may be repeated after a crash, so every action must be idempotent. Events
 * are either applied completely or refused.
 *
 * Messages that belong to an epoch are refused in any other (-ESTALE): they come from executors or
 * planners that have not heard of the change yet. Not thread-safe. */
#ifndef COORDINATOR_JOBS_JOBS_H
#define COORDINATOR_JOBS_JOBS_H

#include "common/base/error.h"
#include "coordinator/jobs/job.h"

enum job_action_kind {
    JOB_ACTION_STORE,  /* the record changed: store it, then notify watchers */
    JOB_ACTION_HOLD,   /* membership_hold() exactly job_devices() */
    JOB_ACTION_PLAN,   /* plan the epoch; answered by PLANNED, UNFIT or REFUSED */
    JOB_ACTION_ASSIGN, /* tell each rank's worker to start it; answered by READY or EXITED */
    JOB_ACTION_GO,     /* let executors run that are ready or whose pause is over */
    JOB_ACTION_PAUSE,  /* stop them all after the same step; answered by PAUSED for each */
    /* stop the executors; answered by EXITED for each rank, even if there was none */
    JOB_ACTION_STOP,
    /* let executors leave the epoch and stay with their state; answered by EXITED */
    JOB_ACTION_QUIESCE,
    JOB_ACTION_DROP,    /* stop executors that stayed; not answered */
    JOB_ACTION_RELEASE, /* membership_hold() nothing */
};

struct job_action {
    enum job_action_kind kind;
    char job[JOB_ID_SIZE];
    uint32_t epoch;
};

/* Initialize to zero; jobs_actions_finish() leaves it so. */
struct job_actions {
    struct job_action *items;
    size_t count, capacity;
};
void jobs_actions_finish(struct job_actions *actions);

enum job_event_kind {
    JOB_EVENT_CANCEL, /* words: who; save: with a checkpoint first */
    JOB_EVENT_PAUSE,  /* pause it. words: who; release: give its devices back */
    JOB_EVENT_RESUME, /* resume what was held */
    JOB_EVENT_REPLAN, /* words: who; for jobs whose executors can stay */
    JOB_EVENT_GROW,   /* the same on our own initiative; words: what is gained */
    /* epoch, plan; devices in the order of ranks, all or some of those granted */
    JOB_EVENT_PLANNED,
    JOB_EVENT_UNFIT,   /* epoch, devices_needed: as many would do; words: why, and what would fit */
    JOB_EVENT_REFUSED, /* epoch; words: why there can be no plan */
    /* epoch, rank, step after which it begins; not stored: a repeated assignment brings it again */
    JOB_EVENT_READY,
    JOB_EVENT_PAUSED,     /* epoch, rank, paused; not stored: a repeated pause brings it again */
    JOB_EVENT_PROGRESS,   /* epoch, step, loss, tokens_per_s, skipped; not stored */
    JOB_EVENT_NOT_FINITE, /* epoch: too many consecutive steps were skipped */
    JOB_EVENT_STAGED,     /* epoch, step: a checkpoint is complete and thereby listed */
    /* epoch, unsaved; words: why the last step could not be saved, which is tried again */
    JOB_EVENT_UNSAVED,
    JOB_EVENT_UNLISTED,      /* epoch, older: the checkpoint it was to start from is damaged */
    JOB_EVENT_EXITED,        /* epoch, rank, exited; words: the executor's last words, or "" */
    JOB_EVENT_WORKER_LOST,   /* worker; applies to all jobs, `job` is unused; words: why */
    JOB_EVENT_WORKER_DRAINS, /* likewise: jobs that can leave it do */
    JOB_EVENT_WORKER_JOINED, /* likewise: what did not fit may fit now */
    JOB_EVENTS
};

struct job_event {
    enum job_event_kind kind;
    const char *job; /* its id */
    uint32_t epoch;
    unsigned rank;
    const char *words; /* NULL means "" */
    union {
        uint64_t step;
        bool save;
        bool release;
        struct {
            const char *id;
            const struct device_ref *devices;
            size_t device_count;
        } plan;
        struct {
            uint64_t step; /* 0: none is left */
            uint32_t epoch;
        } older;
        struct {
            enum job_reason reason; /* NO_SPACE or NOT_SAVED */
        } unsaved;
        unsigned devices_needed;
        struct {
            uint32_t number; /* of the pause */
            uint64_t step;   /* the step after which it paused */
        } paused;
        struct {
            uint64_t step;
            double loss, tokens_per_s;
            uint64_t tokens; /* of the step, and */
            double time_s;   /* how long it took */
            bool skipped;    /* not finite: no weight was changed */
        } progress;
        struct {
            int status;
            uint64_t step;           /* the last one it is known to have finished; 0: unknown */
            enum job_reason refused; /* NONE, or why another try is useless */
            bool by_others; /* it gave up because another rank did, or because it was told to */
            bool damaged;   /* it could not load the checkpoint */
            bool unsaved;   /* it was done, and the last step could not be saved */
            bool stalled;   /* it held up the others and was terminated */
            bool out_of_memory;
            /* with status 0: nothing of the job is left to do, and the loss of its last step */
            bool finished;
            double loss;         /* NaN: unknown */
            uint64_t memory_max; /* bytes to plan for on this device from now on; 0: all */
        } exited;
        struct {
            const char *name;
            uint64_t instance;
        } worker;
    };
};

struct jobs_config {
    size_t pending_max; /* submissions beyond it are refused */
};

#define JOBS_CONFIG_DEFAULT ((struct jobs_config){.pending_max = 10000})

/* Jobs are numbered from first_number on. The config is copied. */
struct jobs *jobs_create(const struct jobs_config *config, uint64_t first_number);
void jobs_destroy(struct jobs *jobs);

/* Whether this user has submitted a job with this key. */
bool jobs_knows(const struct jobs *jobs, const struct job_submission *submission);
/* Accept a job; *out is lent. The same user and key again yield the same job and no action.
 * -EINVAL: it is invalid; the message says how. -EEXIST: the key was used for another job file.
 * -EAGAIN: the queue is full. */
int jobs_submit(struct jobs *jobs, const struct job_submission *submission, uint64_t now_ms,
                const struct job **out, struct job_actions *actions, struct error *err);

/* Apply an event. Repeating one that was applied is harmless and returns 0. -ENOENT: no such job.
 * -ESTALE: of another epoch, or too late for the job's state. -EINVAL: no such rank, or devices
 * that were not granted. */
int jobs_apply(struct jobs *jobs, const struct job_event *event, uint64_t now_ms,
               struct job_actions *actions, struct error *err);

/* Grant free devices, first in, first out among jobs that want the same kind, and tell the others
 * why they wait. A job that even the idle cluster could not run blocks nobody. Call it after the
 * actions of a turn have been carried out, with the devices as they are then. */
void jobs_schedule(struct jobs *jobs, const struct device_view *devices, size_t device_count,
                   uint64_t now_ms, struct job_actions *actions);

/* Restore a stored job (copied) when the coordinator starts, in the order of numbers, and append
 * the actions of its state again. -EEXIST: out of order or present already. */
int jobs_restore(struct jobs *jobs, const struct job *stored, struct job_actions *actions,
                 struct error *err);

/* Drop a job that has ended; it may be unknown. */
void jobs_forget(struct jobs *jobs, uint64_t number);

/* Jobs by number; lent until the next non-const call. NULL: unknown. */
size_t jobs_count(const struct jobs *jobs);
const struct job *jobs_at(const struct jobs *jobs, size_t index);
const struct job *jobs_find(const struct jobs *jobs, const char *id);

#endif
