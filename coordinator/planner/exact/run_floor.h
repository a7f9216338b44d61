/* run_floor.h - what a block of the longest run takes at least per micro-batch on a stage of like
 * devices, however these divide it. In seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_RUN_FLOOR_H
#define COORDINATOR_PLANNER_EXACT_RUN_FLOOR_H

#include "coordinator/planner/exact/single_device.h"

/* Forward and backward; and the backward. Infinity: they cannot divide it. */
struct run_floor {
    double both_s, back_s;
};

/* Times with messages, by devices that divide a block otherwise than by samples, and by the samples
 * that each has. */
struct group_floor {
    int devices;
    int64_t samples;
    struct run_floor floor;
};

struct run_floors {
    struct splits *splits;
    bool messages; /* they are counted, which means to lower some parts */
    struct group_floor *groups;
    size_t count, capacity;
};

void run_floors_finish(struct run_floors *floors);
struct run_floor run_floor_find(struct run_floors *floors, const struct single_device *alone,
                                int devices);

#endif
