/* basis.h - what the bounds of points are derived from, each computed when it is first needed: what
 * one device alone would take, and what any number of them can share. */
#ifndef COORDINATOR_PLANNER_EXACT_BASIS_H
#define COORDINATOR_PLANNER_EXACT_BASIS_H

#include "coordinator/planner/exact/run_floor.h"

struct basis {
    struct costs *costs;
    struct single_device *items; /* one per micro-batch size requested so far */
    size_t count, capacity;
    bool unlike; /* whether the devices differ; known once there is an item */
    struct splits splits;
    struct run_floors floors;
    double *once_s; /* [n - 1]: of n devices, each once per step besides its blocks; 0: not known */
    double *memory_bytes; /* [n]: memory of the first n devices together */
};

void basis_init(struct basis *basis, struct costs *costs);
void basis_finish(struct basis *basis);
/* Which roles are offered has changed: forget what depends on it. messages: count those that divide
 * a block, which is worth it only for many devices and if there is time. */
void basis_forget(struct basis *basis, bool messages);

/* Lent until another micro-batch size is asked for. samples: per micro-batch. */
const struct single_device *basis_alone(struct basis *basis, int64_t samples);
/* The least share of a block of the run that some of so many devices have; infinity: they cannot
 * divide it. */
double basis_share(struct basis *basis, const struct single_device *alone, int devices);
/* What a block of the run takes at least on a stage of so many devices. */
struct run_floor basis_floor(struct basis *basis, const struct single_device *alone, int devices);
/* What each of so many devices does once per step besides its blocks: the metrics of all of them
 * are summed up. */
double basis_once(struct basis *basis, int devices);
/* Memory of the request's first devices together. */
double basis_memory(struct basis *basis, int devices);

#endif
