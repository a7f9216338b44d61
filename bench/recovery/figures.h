/* figures.h - what is measured of each kill, and how it is printed. */
#ifndef BENCH_RECOVERY_FIGURES_H
#define BENCH_RECOVERY_FIGURES_H

#include <stdbool.h>

/* The phases from the kill to the next finished step, in order; from WHOLE on, other figures. In
 * seconds, except LOST. */
enum phase {
    DETECT,
    QUIESCE, /* until all other ranks have left the epoch */
    WAIT,    /* for devices */
    PLAN,
    START, /* until all ranks are ready: PREPARE and MOVE of the slowest rank, and more */
    PREPARE,
    MOVE,
    FIRST_STEP,
    WHOLE,
    LOST,       /* steps */
    USUAL_STEP, /* time of a step before the kill */
    CAUGHT_UP,  /* from the kill until the lost steps are done again, at the usual pace */
    PHASES
};

struct kill {
    bool worker;       /* true: a worker with its executors; false: one executor */
    bool replicas;     /* the plan had every slice on two nodes; else copies, or a checkpoint */
    double of[PHASES]; /* seconds; LOST in steps */
};

/* Print for each figure a line with its median and one, NAME_max, with its worst value: of replans,
 * together with the required limits, or of restarts. */
void figures_print(bool replans, const struct kill *kills, int count);

#endif
