/* restarts.h - whether a job that broke begins again; inside jobs/ only. */
#ifndef COORDINATOR_JOBS_RESTARTS_H
#define COORDINATOR_JOBS_RESTARTS_H

#include "coordinator/jobs/machine.h"

/* Of a job that is FAILING and of which no executor is left: true when it begins again, counted
 * on its record; *cause is why it does, or why it has failed. */
bool job_begins_again(struct job *job, struct job_cause *cause);

#endif
