/* tied_floor.h - lower bounds on what a pipeline does once per step because its first and its last
 * stage share weights: gradients go one way, updated weights come back. In seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_TIED_FLOOR_H
#define COORDINATOR_PLANNER_EXACT_TIED_FLOOR_H

struct instance;

/* u of the first and of the last block. */
struct tied_floor {
    double first_s, last_s;
};

/* Compute the bounds and raise the floors of the two blocks' choices, which must have been filled.
 * Zero: nothing is known. */
struct tied_floor tied_floor_set(struct instance *instance);

#endif
