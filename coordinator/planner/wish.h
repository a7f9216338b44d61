/* wish.h - other circumstances to plan in: what if, and why not. */
#ifndef COORDINATOR_PLANNER_WISH_H
#define COORDINATOR_PLANNER_WISH_H

#include "coordinator/planner/planner.h"

/* Devices that are changed; what is not, they lend from those they were made from. */
struct wished {
    struct planner_device *devices;
    size_t count, capacity;
    struct profile **profiles; /* those that were changed, equal ones once */
    size_t profile_count, profile_capacity;
    char **texts; /* names and hosts of devices that were added */
    size_t text_count, text_capacity;
};

/* A copy of the devices. */
void wished_init(struct wished *wished, const struct planner_device *devices, int count);
void wished_finish(struct wished *wished);
/* `more` devices like the last one, on hosts of their own that have as many as its host has.
 * -EINVAL: nothing is known of the network between them. */
int wished_add(struct wished *wished, int more, struct error *err);
/* A link so many times as fast: "host", "network", or the network of one node, "node-a" of
 * "node-a/0". -EINVAL: there is no such thing. */
int wished_link(struct wished *wished, const char *what, double factor, struct error *err);
/* So much memory for every device. */
void wished_memory(struct wished *wished, uint64_t bytes);

/* Pin what "dp=2", "tp=8", "pp=4", "micro_batches=16" or "zero=3" says, over what the plan section
 * pins and forbids. -EINVAL: it says something else. */
int wish_pin(struct job_plan *plan, const char *text, struct error *err);

#endif
