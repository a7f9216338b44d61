/* losses.h - what becomes of a job when a rank of it ends or a worker goes; inside jobs/ only. */
#ifndef COORDINATOR_JOBS_LOSSES_H
#define COORDINATOR_JOBS_LOSSES_H

#include "coordinator/jobs/machine.h"

/* EXITED, as a handler of events.c: marks the rank, and returns the trigger, or -EINVAL: there is
 * no such rank. */
int job_lose_rank(struct job *job, const struct job_event *event, struct job_cause *cause,
                  struct error *err);
/* What else follows from EXITED, whatever becomes of the job. */
void job_follow_exit(struct job *job, const struct job_event *event, struct job_actions *actions);

/* WORKER_LOST and WORKER_DRAINS, which may not concern the job. */
void job_lose_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                     struct job_actions *actions);
void job_leave_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions);

#endif
