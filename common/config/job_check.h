/* job_check.h - fields of a job that contradict each other, and defaults that follow from others.
 */
#ifndef COMMON_CONFIG_JOB_CHECK_H
#define COMMON_CONFIG_JOB_CHECK_H

#include "common/config/document.h"
#include "common/config/job.h"

/* Complete and check a job that was read from the document. -EINVAL with the place. */
int job_check(struct job_config *job, const struct document *document, struct error *err);

#endif
