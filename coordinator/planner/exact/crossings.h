/* crossings.h - lower bounds on what a stage takes to receive from the previous stage and to send
 * to the next, whatever the strategies on either side: seconds per micro-batch, forward and
 * backward together. */
#ifndef COORDINATOR_PLANNER_EXACT_CROSSINGS_H
#define COORDINATOR_PLANNER_EXACT_CROSSINGS_H

struct instance;

struct crossings {
    int blocks;
    /* [stage * blocks + block]: receiving before this first block of the stage, and sending after
     * this last block. NULL: not known. */
    double *into_s, *out_of_s;
};

/* The instance's choices must have been filled. */
void crossings_init(struct crossings *crossings, struct instance *instance);
void crossings_finish(struct crossings *crossings);
/* Both crossings of a stage with blocks [first, end); 0 if not known. */
double crossings_of(const struct crossings *crossings, int stage, int first, int end);

#endif
