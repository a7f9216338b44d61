/* tied_floor.h - what a pipeline takes at least once a step because its first and its last stage
 * share weights: their gradients go one way, the updated weights come back. Seconds. */
#ifndef COORDINATOR_PLANNER_EXACT_TIED_FLOOR_H
#define COORDINATOR_PLANNER_EXACT_TIED_FLOOR_H

struct instance;

/* u of the first block and of the last. */
struct tied_floor {
    double first_s, last_s;
};

/* Of an instance whose choices have been filled: raises their floors. Zero: nothing is known. */
struct tied_floor tied_floor_set(struct instance *instance);

#endif
