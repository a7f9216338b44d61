/* wish.h - hypothetical circumstances to plan for, behind `gimbal plan what-if` and `why-not`. */
#ifndef COORDINATOR_PLANNER_WISH_H
#define COORDINATOR_PLANNER_WISH_H

#include "coordinator/planner/costs/request.h"

/* An altered copy of some devices. What is not altered is still lent by the original devices, which
 * must outlive it. */
struct wished {
    struct planner_device *devices;
    size_t count, capacity;
    struct profile **profiles; /* altered profiles; equal ones are kept once */
    size_t profile_count, profile_capacity;
    char **texts; /* names and hosts of added devices */
    size_t text_count, text_capacity;
};

/* Start with an unaltered copy of the devices. */
void wished_init(struct wished *wished, const struct planner_device *devices, int count);
void wished_finish(struct wished *wished);
/* Add `more` devices like the last one, on new hosts that have as many devices each as its host
 * has. -EINVAL: the last device's profile has no network speed. */
int wished_add(struct wished *wished, int more, struct error *err);
/* Make a link `factor` times as fast. `what` is "host", "network", or the name of a node for its
 * network alone ("node-a" for device "node-a/0"). -EINVAL: the factor is not positive, or there is
 * no such link. */
int wished_link(struct wished *wished, const char *what, double factor, struct error *err);
/* Give every device this much memory. */
void wished_memory(struct wished *wished, uint64_t bytes);

/* Apply a pin such as "dp=2", "tp=8", "pp=4", "micro_batches=16" or "zero=3", replacing what the
 * plan section says of it (zero=N forbids all other values). -EINVAL: it is none of these. */
int wish_pin(struct job_plan *plan, const char *text, struct error *err);

#endif
