/* ranks.h - maps the devices granted to a job to its ranks. Private to jobs/. */
#ifndef COORDINATOR_JOBS_RANKS_H
#define COORDINATOR_JOBS_RANKS_H

#include "common/base/error.h"
#include "coordinator/jobs/job.h"

/* Order the job's ranks by a plan: rank i is on devices[i]. Other ranks that may have stayed with
 * state hand it over and are ordered behind; the rest are dropped. -EINVAL, and nothing is changed:
 * the plan has too few or too many ranks, uses a device that was not granted, or uses one twice. */
int job_order_ranks(struct job *job, const struct device_ref *devices, size_t count,
                    struct error *err);

/* -EINVAL unless the job has a rank with this number. */
int job_check_rank(const struct job *job, unsigned rank, struct error *err);

#endif
