/* bounds.h - what no plan of a point is shorter than, whatever its strategies: from what the
 * fastest device alone would take for all blocks, shared out. Seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_BOUNDS_H
#define COORDINATOR_PLANNER_EXACT_BOUNDS_H

#include "coordinator/planner/exact/single_device.h"
#include "coordinator/planner/space/space.h"

struct point_bound {
    double formula_s,
        simulated_s; /* simulated: by programs, or by events where the point is large */
};

struct bounds {
    struct costs *costs;
    struct single_device *items; /* of every size of micro-batch that was asked for */
    size_t count, capacity;
    bool unlike;          /* the devices */
    double *memory_bytes; /* of the first devices together, per their number */
};

void bounds_init(struct bounds *bounds, struct costs *costs);
void bounds_finish(struct bounds *bounds);
struct point_bound bounds_point(struct bounds *bounds, const struct space_point *point);
/* Are the point's plans judged by events? And what no plan takes less than by events. */
bool bounds_large(const struct bounds *bounds, const struct space_point *point);
double bounds_by_events(struct bounds *bounds, const struct space_point *point);
/* Of points whose devices are unlike: more than bounds_point, and it takes longer; infinity: no
 * stages have room for all blocks; 0: all devices of the request are alike. */
struct point_bound bounds_unlike(struct bounds *bounds, const struct space_point *point);
/* Of all points on so many devices. */
struct point_bound bounds_devices(struct bounds *bounds, int devices);
/* May the weights, gradients and moments of the model lie on the point's devices, and what the
 * backward of one micro-batch needs? */
bool bounds_fit(struct bounds *bounds, const struct space_point *point);

#endif
