/* bounds.h - lower bounds on the step time of every plan of a point, whatever its strategies:
 * derived from what the fastest device alone would take for all blocks, divided among the devices.
 * In seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_BOUNDS_H
#define COORDINATOR_PLANNER_EXACT_BOUNDS_H

#include "coordinator/planner/exact/basis.h"
#include "coordinator/planner/space/space.h"

/* Seconds. simulated_s: by programs, or by events for points that are too large for programs. */
struct point_bound {
    double formula_s, simulated_s;
};

/* Whether the point's stages have numbers of devices that can divide blocks. false is certain. */
bool bounds_legal(struct basis *basis, const struct space_point *point);
/* Bounds of a point, quick to compute; it has to be legal. */
struct point_bound bounds_point(struct basis *basis, const struct space_point *point);
/* Whether plans of the point are too large to be simulated by programs and are judged by events;
 * and a lower bound on their step by events. */
bool bounds_large(const struct basis *basis, const struct space_point *point);
double bounds_by_events(struct basis *basis, const struct space_point *point);
/* A tighter bound for points whose devices differ, slower to compute. Infinity: the stages together
 * have no room for all blocks. 0: all devices of the request are alike. */
struct point_bound bounds_unlike(struct basis *basis, const struct space_point *point);
/* Lower bounds for all plans on the first `devices` devices of the request. */
struct point_bound bounds_devices(struct basis *basis, int devices);
/* Whether the model's weights, gradients and optimizer moments, and what its micro-batches in
 * flight keep for their backward, may fit into the memory of all the point's devices together.
 * false is certain. */
bool bounds_fit(struct basis *basis, const struct space_point *point);

#endif
