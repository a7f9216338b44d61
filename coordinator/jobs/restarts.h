/* restarts.h - decides whether a job that broke starts again. Private to jobs/. */
#ifndef COORDINATOR_JOBS_RESTARTS_H
#define COORDINATOR_JOBS_RESTARTS_H

#include "coordinator/jobs/machine.h"

/* For a job that is FAILING or REPLANNING and has no executor left: returns true if it starts
 * again, which is counted in its record. *cause is why it does, or why it has failed. */
bool job_begins_again(struct job *job, struct job_cause *cause);

#endif
