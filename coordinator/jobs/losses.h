/* losses.h - what happens to a job when one of its ranks ends or a worker leaves. Private to
 * jobs/. */
#ifndef COORDINATOR_JOBS_LOSSES_H
#define COORDINATOR_JOBS_LOSSES_H

#include "coordinator/jobs/machine.h"

/* Handler of EXITED for events.c: marks the rank and returns the trigger; -EINVAL: there is no such
 * rank. */
int job_lose_rank(struct job *job, const struct job_event *event, struct job_cause *cause,
                  struct error *err);
/* Further consequences of EXITED, whatever happens to the job. */
void job_follow_exit(struct job *job, const struct job_event *event, struct job_actions *actions);

/* WORKER_LOST and WORKER_DRAINS, whether they concern the job or not. */
void job_lose_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                     struct job_actions *actions);
void job_leave_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions);

#endif
