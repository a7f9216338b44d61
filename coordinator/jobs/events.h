/* events.h - the effect of a message on one job. Private to jobs/. */
#ifndef COORDINATOR_JOBS_EVENTS_H
#define COORDINATOR_JOBS_EVENTS_H

#include "coordinator/jobs/machine.h"

/* Apply an event that names its job; event->words must not be NULL. Results as of jobs_apply(). */
int job_event_apply(struct job *job, const struct job_event *event, uint64_t now_ms,
                    struct job_actions *actions, struct error *err);

/* Apply WORKER_LOST, WORKER_DRAINS or WORKER_JOINED to a job, whether it concerns the job or
 * not. */
void job_event_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions);

#endif
