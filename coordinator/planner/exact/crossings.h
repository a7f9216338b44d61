/* crossings.h - what a stage takes at least to receive from the one before it and to pass on to the
 * next, whatever the strategies on either side: seconds of a micro-batch, forward and backward. */
#ifndef COORDINATOR_PLANNER_EXACT_CROSSINGS_H
#define COORDINATOR_PLANNER_EXACT_CROSSINGS_H

struct instance;

struct crossings {
    int blocks;
    /* [stage * blocks + block]: before the stage's first block, behind its last. NULL: not known */
    double *into_s, *out_of_s;
};

/* Of an instance whose choices have been filled. */
void crossings_init(struct crossings *crossings, struct instance *instance);
void crossings_finish(struct crossings *crossings);
/* Of a stage with the blocks [first, end). */
double crossings_of(const struct crossings *crossings, int stage, int first, int end);

#endif
