/* jobs.h - the queue: events and a time in, changed jobs and actions out.
 *
 * Everything that changes a job's state is an event, and what follows from it is a list of
 * actions that the caller carries out in their order. JOB_ACTION_STORE comes before any other
 * action of its job: once it is stored, the rest may be repeated after a crash, so every action
 * must be harmless when done twice. Nothing here fails half-way: an event is applied or refused.
 *
 * Messages that belong to an epoch are refused in any other (-ESTALE): they come from executors
 * or planners that have not heard yet. */
#ifndef COORDINATOR_JOBS_JOBS_H
#define COORDINATOR_JOBS_JOBS_H

#include "common/base/error.h"
#include "coordinator/jobs/job.h"

enum job_action_kind {
    JOB_ACTION_STORE,   /* the record changed: store it, then tell who watches */
    JOB_ACTION_HOLD,    /* membership_hold() exactly job_devices() */
    JOB_ACTION_PLAN,    /* plan the epoch; answered by PLANNED, UNFIT or REFUSED */
    JOB_ACTION_ASSIGN,  /* tell each rank's worker to start it; answered by READY or EXITED */
    JOB_ACTION_GO,      /* let the ready executors run, and those in pauses that are over */
    JOB_ACTION_PAUSE,   /* let them stop behind a step, all behind the same; PAUSED for each */
    JOB_ACTION_STOP,    /* stop the executors; EXITED for each, also where there was none */
    JOB_ACTION_QUIESCE, /* have them leave the epoch and stay with their state; EXITED as above */
    JOB_ACTION_DROP,    /* stop those that stayed; nothing answers */
    JOB_ACTION_RELEASE, /* membership_hold() nothing */
};

struct job_action {
    enum job_action_kind kind;
    char job[JOB_ID_SIZE];
    uint32_t epoch;
};

/* Zeroed to begin with, and again by jobs_actions_finish(). */
struct job_actions {
    struct job_action *items;
    size_t count, capacity;
};
void jobs_actions_finish(struct job_actions *actions);

enum job_event_kind {
    JOB_EVENT_CANCEL,  /* words: who; save: with a checkpoint */
    JOB_EVENT_HOLD,    /* words: who; release: and give its devices back */
    JOB_EVENT_LET_GO,  /* what was held */
    JOB_EVENT_REPLAN,  /* words: who; where executors can stay */
    JOB_EVENT_GROW,    /* the same, of our own accord; words: what is gained */
    JOB_EVENT_PLANNED, /* epoch, plan, devices: the rank's order, all or some of the grant */
    JOB_EVENT_UNFIT,   /* epoch, devices_needed: more would do; words: why, and what */
    JOB_EVENT_REFUSED, /* epoch; words: why no plan can be */
    JOB_EVENT_READY,   /* epoch, rank, step that it begins behind; not stored: a repeated assignment
                          brings it again */
    JOB_EVENT_PAUSED,  /* epoch, rank, paused; not stored: a repeated pause brings it again */
    JOB_EVENT_PROGRESS,      /* epoch, step, loss, tokens_per_s, skipped; not stored */
    JOB_EVENT_NOT_FINITE,    /* epoch: the steps skipped in a row are too many */
    JOB_EVENT_STAGED,        /* epoch, step: a checkpoint is complete, and is listed by this */
    JOB_EVENT_UNLISTED,      /* epoch, older: the checkpoint that it begins from is damaged */
    JOB_EVENT_EXITED,        /* epoch, rank, exited; words: the executor's last ones, or "" */
    JOB_EVENT_WORKER_LOST,   /* worker; job is not used, all jobs are looked at; words: why */
    JOB_EVENT_WORKER_DRAINS, /* as above: whoever can leave it does */
    JOB_EVENT_WORKER_JOINED, /* as above: what did not fit may fit now */
    JOB_EVENTS
};

struct job_event {
    enum job_event_kind kind;
    const char *job; /* its id */
    uint32_t epoch;
    unsigned rank;
    const char *words; /* NULL is "" */
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
        unsigned devices_needed;
        struct {
            uint32_t number; /* of the pause */
            uint64_t step;   /* that it is behind */
        } paused;
        struct {
            uint64_t step;
            double loss, tokens_per_s;
            bool skipped; /* not finite: it has changed no weight */
        } progress;
        struct {
            int status;
            uint64_t step;           /* the last that it is known to have finished; 0: not known */
            enum job_reason refused; /* NONE; else why no other try is of any use */
            bool by_others;          /* it gave up because another rank did, or it was told to */
            bool damaged;            /* it could not load the checkpoint */
            bool stalled;            /* it held up the others, and was ended for it */
            bool out_of_memory;
            uint64_t memory_max; /* bytes to be planned there from now on; 0: all of them */
        } exited;
        struct {
            const char *name;
            uint64_t instance;
        } worker;
    };
};

struct jobs_config {
    size_t pending_max; /* more are refused */
    size_t ended_max;   /* so many ended jobs are remembered here, the newest; the store has all */
};

#define JOBS_CONFIG_DEFAULT ((struct jobs_config){.pending_max = 10000, .ended_max = 1000})

/* Jobs are numbered from first_number on. */
struct jobs *jobs_create(const struct jobs_config *config, uint64_t first_number);
void jobs_destroy(struct jobs *jobs);

/* Was a job submitted by this user with this key? */
bool jobs_knows(const struct jobs *jobs, const struct job_submission *submission);
/* Accept a job; *out is lent. The same user and key again give the same job and no action.
 * -EINVAL: what is wrong with it. -EEXIST: the key was used for another job file.
 * -EAGAIN: the queue is full. */
int jobs_submit(struct jobs *jobs, const struct job_submission *submission, uint64_t now_ms,
                const struct job **out, struct job_actions *actions, struct error *err);

/* Apply an event. Repeating one that was applied is harmless and returns 0.
 * -ENOENT: no such job. -ESTALE: of another epoch, or too late for the state the job is in.
 * -EINVAL: no such rank, or devices that were not granted. */
int jobs_apply(struct jobs *jobs, const struct job_event *event, uint64_t now_ms,
               struct job_actions *actions, struct error *err);

/* Grant free devices, first in, first out among the jobs that want the same kind, and tell the
 * others why they wait. A job that even the idle cluster could not run blocks nobody. To be
 * called once the actions of a turn were carried out, with the devices as they are then. */
void jobs_schedule(struct jobs *jobs, const struct device_view *devices, size_t device_count,
                   uint64_t now_ms, struct job_actions *actions);

/* Take over a stored job (copied) when the coordinator starts, in the order of their numbers,
 * and append the actions that its state calls for, again. -EEXIST when it is here already. */
int jobs_restore(struct jobs *jobs, const struct job *stored, struct job_actions *actions,
                 struct error *err);

/* By number; lent until the next call that is not const. NULL when unknown. */
size_t jobs_count(const struct jobs *jobs);
const struct job *jobs_at(const struct jobs *jobs, size_t index);
const struct job *jobs_find(const struct jobs *jobs, const char *id);

const char *jobs_action_name(enum job_action_kind kind);

#endif
