/* figures.h - what was measured of kills, and how it is printed. */
#ifndef BENCH_RECOVERY_FIGURES_H
#define BENCH_RECOVERY_FIGURES_H

#include <stdbool.h>

/* From the kill to the next finished step, in this order; but the last ones are no phases. */
enum phase {
    DETECT,
    QUIESCE, /* all others have left the epoch */
    WAIT,    /* for devices */
    PLAN,
    START, /* until all ranks are ready: prepare and move, at the slowest rank, and more */
    PREPARE,
    MOVE,
    FIRST_STEP,
    WHOLE,
    LOST,       /* steps */
    USUAL_STEP, /* what a step took before the kill */
    CAUGHT_UP,  /* from the kill until the lost steps are made up for, at the usual pace */
    PHASES
};

struct kill {
    bool worker;       /* with its executors; else an executor alone */
    bool replicas;     /* the plan had every slice on two nodes; else copies, or a checkpoint */
    double of[PHASES]; /* seconds, but for steps */
};

/* A line for the median of each figure and one, NAME_max, for the worst: of replans, with what they
 * are held to, or of restarts. */
void figures_print(bool replans, const struct kill *kills, int count);

#endif
