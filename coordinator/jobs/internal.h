/* internal.h - what the files of jobs/ share; not for others.
 *
 * queue.c decides who gets devices, events.c what a message does to one job, and machine.c alone
 * changes a job's state. */
#ifndef COORDINATOR_JOBS_INTERNAL_H
#define COORDINATOR_JOBS_INTERNAL_H

#include "common/base/error.h"
#include "coordinator/jobs/job.h"
#include "coordinator/jobs/jobs.h"

struct jobs {
    struct jobs_config config;
    struct job **items; /* sorted by number */
    size_t count, capacity;
    uint64_t next_number;
};

/* Sets of states, as bits. */

#define IN(state) (1u << (state))

#define WAITING (IN(JOB_PENDING) | IN(JOB_PLANNING) | IN(JOB_STARTING))
#define LIVE (IN(JOB_RUNNING) | IN(JOB_PAUSING) | IN(JOB_PAUSED))
#define BREAKING (IN(JOB_FAILING) | IN(JOB_REPLANNING))
#define STOPPING (IN(JOB_CANCELLING) | IN(JOB_RELEASING) | BREAKING)
/* neither ended nor being cancelled */
#define LASTING (WAITING | LIVE | BREAKING | IN(JOB_RELEASING))
#define ENDED (IN(JOB_DONE) | IN(JOB_FAILED) | IN(JOB_CANCELLED))

/* job.c */

/* Order the job's ranks by a plan: rank i is on devices[i]. Other ranks that may have stayed with
 * state hand it over and are ordered behind; the rest are dropped. -EINVAL, and nothing is changed:
 * the plan has too few or too many ranks, uses a device that was not granted, or uses one twice. */
int job_order_ranks(struct job *job, const struct device_ref *devices, size_t count,
                    struct error *err);

/* -EINVAL unless the job has a rank with this number. */
int job_check_rank(const struct job *job, unsigned rank, struct error *err);

/* machine.c: the state machine. */

enum job_trigger {
    TRIGGER_NONE,
    TRIGGER_SUBMITTED,
    TRIGGER_GRANTED,
    TRIGGER_PLANNED,
    TRIGGER_UNFIT,   /* no plan on these devices, but on more */
    TRIGGER_REFUSED, /* no plan at all */
    TRIGGER_READY,   /* all ranks are ready */
    TRIGGER_PAUSE,
    TRIGGER_PAUSED, /* all ranks have paused */
    TRIGGER_RESUME,
    TRIGGER_RELEASE, /* it is paused and saved, and shall give its devices back */
    TRIGGER_BROKEN,  /* a rank failed, or its worker was lost */
    TRIGGER_LEAVE,   /* the same, but the other executors shall stay */
    TRIGGER_CANCEL,
    TRIGGER_GONE,     /* no rank has an executor any more */
    TRIGGER_AGAIN,    /* likewise, and the job is worth another try */
    TRIGGER_FINISHED, /* likewise, and it needs none: a rank had done all that was left to do */
};

/* The reason for a change; a NULL pointer keeps the previous reason and words. */
struct job_cause {
    enum job_reason reason;
    char words[JOB_WORDS_SIZE];
};

/* Format the words and clean them by text_tame(). */
void job_cause_set(struct job_cause *cause, enum job_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set why a PENDING job still waits, why a paused one keeps its devices, or what one still has to
 * do that has finished its steps. Returns true if the reason, not just its words, has changed. */
bool job_wait_because(struct job *job, const struct job_cause *cause);

/* The only place where a job's state changes. There must be a transition for the trigger. */
void job_fire(struct job *job, enum job_trigger trigger, const struct job_cause *cause,
              uint64_t now_ms, struct job_actions *actions);

/* Apply what follows from the record itself: a job without executors has ended; one that is held
 * pauses and one that is not resumes; one that is paused, saved and shall give its devices back
 * does so. */
void job_settle(struct job *job, uint64_t now_ms, struct job_actions *actions);

/* Append the actions of the job's state again, for a job that comes from the store. */
void job_resume(const struct job *job, struct job_actions *actions);

/* Append an action. STORE is appended only once per job, before anything else of that job. */
void job_act(const struct job *job, enum job_action_kind kind, struct job_actions *actions);

/* Whether all steps are done, and the last one could not be saved so far. */
bool job_is_unsaved(const struct job *job);

/* events.c */

/* Apply an event that names its job; event->words must not be NULL. Results as of jobs_apply(). */
int job_event_apply(struct job *job, const struct job_event *event, uint64_t now_ms,
                    struct job_actions *actions, struct error *err);

/* Apply WORKER_LOST, WORKER_DRAINS or WORKER_JOINED to a job, whether it concerns the job or
 * not. */
void job_event_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions);

#endif
