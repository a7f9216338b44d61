/* job_check.h - checks that fields of a job do not contradict each other, and sets defaults that
 * depend on other fields. */
#ifndef COMMON_CONFIG_JOB_CHECK_H
#define COMMON_CONFIG_JOB_CHECK_H

#include "common/config/document.h"
#include "common/config/job.h"

/* Complete and check a job that was read from this document. -EINVAL with the place. */
int job_check(struct job_config *job, const struct document *document, struct error *err);

#endif
