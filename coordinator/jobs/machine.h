/* machine.h - the states of a job and what follows from entering one; inside jobs/ only. */
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
    TRIGGER_READY,   /* every rank is */
    TRIGGER_HELD,
    TRIGGER_PAUSED, /* every rank is */
    TRIGGER_LET_GO,
    TRIGGER_RELEASE, /* it is paused, and saved */
    TRIGGER_BROKEN,  /* a rank failed, or its worker is lost */
    TRIGGER_LEAVE,   /* the same, and the other executors are to stay */
    TRIGGER_CANCEL,
    TRIGGER_GONE,  /* no rank has an executor any more */
    TRIGGER_AGAIN, /* ... and the job is worth another try */
};

/* Why; NULL keeps the reason and words there are. */
struct job_cause {
    enum job_reason reason;
    char words[JOB_WORDS_SIZE];
};

void job_cause_set(struct job_cause *cause, enum job_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Why a PENDING job still waits, or a paused one keeps its devices; true when the reason is another
 * than before. */
bool job_wait_because(struct job *job, const struct job_cause *cause);

/* The one place where a job's state changes. The trigger has a row for the job's state. */
void job_fire(struct job *job, enum job_trigger trigger, const struct job_cause *cause,
              uint64_t now_ms, struct job_actions *actions);

/* What follows from the record as it is now: a job of which no executor is left has ended; one
 * that is held stops, one that is not goes on, and one that is paused, saved and to give its
 * devices back does. */
void job_settle(struct job *job, uint64_t now_ms, struct job_actions *actions);

/* The actions of the job's state once more, for a job that comes from the store. */
void job_resume(const struct job *job, struct job_actions *actions);

/* A job is stored once, before anything else of the list is done with it. */
void job_act(const struct job *job, enum job_action_kind kind, struct job_actions *actions);

#endif
