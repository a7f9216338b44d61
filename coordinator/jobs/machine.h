/* machine.h - the state machine of a job. Private to jobs/. */
#ifndef COORDINATOR_JOBS_MACHINE_H
#define COORDINATOR_JOBS_MACHINE_H

#include "coordinator/jobs/jobs.h"

enum job_trigger {
    TRIGGER_NONE,
    TRIGGER_SUBMITTED,
    TRIGGER_GRANTED,
    TRIGGER_PLANNED,
    TRIGGER_UNFIT,   /* no plan on these devices, but on more */
    TRIGGER_REFUSED, /* no plan at all */
    TRIGGER_READY,   /* all ranks are ready */
    TRIGGER_HELD,
    TRIGGER_PAUSED, /* all ranks have paused */
    TRIGGER_LET_GO,
    TRIGGER_RELEASE, /* it is paused and saved, and shall give its devices back */
    TRIGGER_BROKEN,  /* a rank failed, or its worker was lost */
    TRIGGER_LEAVE,   /* the same, but the other executors shall stay */
    TRIGGER_CANCEL,
    TRIGGER_GONE,  /* no rank has an executor any more */
    TRIGGER_AGAIN, /* likewise, and the job is worth another try */
};

/* The reason for a change; a NULL pointer keeps the previous reason and words. */
struct job_cause {
    enum job_reason reason;
    char words[JOB_WORDS_SIZE];
};

/* Format the words and clean them by utf8_tame(). */
void job_cause_set(struct job_cause *cause, enum job_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set why a PENDING job still waits, or why a paused one keeps its devices. Returns true if the
 * reason, not just its words, has changed. */
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

#endif
