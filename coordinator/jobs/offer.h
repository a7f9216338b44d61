/* offer.h - the devices that workers offer during one walk of the queue, and which of the free ones
 * a job takes. Private to jobs/. */
#ifndef COORDINATOR_JOBS_OFFER_H
#define COORDINATOR_JOBS_OFFER_H

#include "coordinator/jobs/job.h"

struct offer {
    const struct device_view *devices; /* lent; those of a worker are adjacent */
    size_t count;
    bool *taken;  /* during this walk */
    int *classes; /* speed classes, see speeds.h */
};

void offer_init(struct offer *offer, const struct device_view *devices, size_t count);
void offer_finish(struct offer *offer);

/* Whether nobody has the device, and it may be granted. */
bool offer_is_free(const struct offer *offer, size_t device);
/* The index after the devices of the worker that owns device `first`. */
size_t offer_worker_end(const struct offer *offer, size_t first);
/* Find the device whose name ("node-a/0") is the first `length` characters of `name`; count: nobody
 * offers it. */
size_t offer_named(const struct offer *offer, const char *name, size_t length);

/* Take one free device as a rank of the job. */
struct job_rank offer_take(struct offer *offer, const struct job *job, size_t device);
/* Take `wanted` devices of the kind, of which at least as many are free. */
void offer_take_best(struct offer *offer, const struct job *job, enum hardware_kind kind,
                     unsigned wanted, struct job_rank *out);
/* Of the devices that the job had, take those on draining workers, as ranks that hand their state
 * over. Returns their number; `out` has room for rank_count. */
size_t offer_take_draining(struct offer *offer, const struct job *job, struct job_rank *out);

#endif
