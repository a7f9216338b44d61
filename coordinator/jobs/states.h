/* states.h - sets of job states, as bits. Private to jobs/. */
#ifndef COORDINATOR_JOBS_STATES_H
#define COORDINATOR_JOBS_STATES_H

#include "coordinator/jobs/job.h"

#define IN(state) (1u << (state))

#define WAITING (IN(JOB_PENDING) | IN(JOB_PLANNING) | IN(JOB_STARTING))
#define LIVE (IN(JOB_RUNNING) | IN(JOB_PAUSING) | IN(JOB_PAUSED))
#define BREAKING (IN(JOB_FAILING) | IN(JOB_REPLANNING))
#define STOPPING (IN(JOB_CANCELLING) | IN(JOB_RELEASING) | BREAKING)
/* neither ended nor being cancelled */
#define LASTING (WAITING | LIVE | BREAKING | IN(JOB_RELEASING))
#define ENDED (IN(JOB_DONE) | IN(JOB_FAILED) | IN(JOB_CANCELLED))

#endif
