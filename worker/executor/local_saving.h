/* local_saving.h - checkpoints of a training without a cluster: who lists them, and how its ranks,
 * which are threads of this process, tell each other what they have written. */
#ifndef WORKER_EXECUTOR_LOCAL_SAVING_H
#define WORKER_EXECUTOR_LOCAL_SAVING_H

#include "common/config/job.h"
#include "worker/executor/session/session.h"

struct local_saving;

/* Below the job's checkpoint.dir, in a folder of the job's name. With `resume` the training goes on
 * from the newest that is listed there; without, there must be none: -EINVAL in words. Errors are
 * those of listing_open and listing_newest; -ENOENT: there is nothing to resume. */
int local_saving_open(const struct job_config *job, bool resume, struct session *session,
                      struct local_saving **out, struct error *err);
/* Accepts NULL. */
void local_saving_close(struct local_saving *saving);

/* The folder to begin from and its step, lent; NULL where the training begins anew. */
const char *local_saving_start(const struct local_saving *saving, uint64_t *step);
/* What a trainer needs; all of it is lent. */
struct saver_config local_saving_config(struct local_saving *saving);

#endif
