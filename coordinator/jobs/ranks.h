/* ranks.h - which of the devices granted to a job becomes which of its ranks; inside jobs/ only. */
#ifndef COORDINATOR_JOBS_RANKS_H
#define COORDINATOR_JOBS_RANKS_H

#include "common/base/error.h"
#include "coordinator/jobs/job.h"

/* Make the job's ranks those of a plan: rank i of it is on devices[i]. Others that may have stayed
 * with state give it, behind them; the rest are let go. -EINVAL, and nothing is changed: the plan
 * has too few or too many ranks, or uses a device that was not granted, or one twice. */
int job_order_ranks(struct job *job, const struct device_ref *devices, size_t count,
                    struct error *err);

/* -EINVAL unless the job has a rank of that number. */
int job_check_rank(const struct job *job, unsigned rank, struct error *err);

#endif
