/* local_saving.h - checkpoints of training without a cluster.
 *
 * It takes the place of the coordinator, which otherwise lists checkpoints and runs the rendezvous:
 * here the ranks are threads of this process, and tell each other what they have written. */
#ifndef WORKER_EXECUTOR_LOCAL_SAVING_H
#define WORKER_EXECUTOR_LOCAL_SAVING_H

#include "common/config/job.h"
#include "worker/executor/session/session.h"

struct local_saving;

/* Open the checkpoints in DIR/NAME-local, with the job's checkpoint.dir and name. With `resume`,
 * training continues from the newest checkpoint listed there (-ENOENT: there is none); without,
 * there must be none (-EINVAL). Otherwise errors of listing_open and listing_newest. Lends the
 * session. */
int local_saving_open(const struct job_config *job, bool resume, struct session *session,
                      struct local_saving **out, struct error *err);
/* Accepts NULL. */
void local_saving_close(struct local_saving *saving);

/* The folder of the checkpoint to start from, and its step; lent. NULL: training starts anew. */
const char *local_saving_start(const struct local_saving *saving, uint64_t *step);
/* The settings for a trainer; everything in them is lent. */
struct saver_config local_saving_config(struct local_saving *saving);

#endif
