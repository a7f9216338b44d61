/* stage.h - the strategies of a stage's layers: the shortest time that fits its
 * memory, to a billionth.
 *
 * A choice is made per layer, and layers of a type are alike, so what counts is
 * how many of them have which strategy. Time and memory add up over layers, and
 * memory is whole MB: a knapsack. What a layer does once per step may be hidden
 * up to some time, and counts beyond it. */
#ifndef COORDINATOR_PLANNER_GALVATRON_STAGE_H
#define COORDINATOR_PLANNER_GALVATRON_STAGE_H

#include <stdbool.h>
#include <stdint.h>

/* What a layer may have. */
struct galvatron_option {
    double seconds; /* of a micro-batch */
    double once_s;  /* per step */
    int64_t mb;
    int number; /* its own name, which comes back in the answer */
};

/* Layers that are alike; of its options none is beaten in all three, and memory
 * rises. */
struct galvatron_run {
    int count, option_count;
    const struct galvatron_option *options;
};

struct galvatron_stage {
    const struct galvatron_run *runs;
    int run_count;
    int64_t mb; /* for all layers */
    /* A filling costs the sum of seconds + weight x what the sum of once_s is
     * above `free_s`. */
    double weight, free_s;
};

/* Drop the options that others beat or equal, and order the rest. Returns how
 * many are left. */
int galvatron_thin(struct galvatron_option *options, int count);

/* The least cost; infinity: nothing fits. numbers (optional) receives the
 * number of the option of each layer, run by run. */
double galvatron_fill(const struct galvatron_stage *of, int *numbers);
/* A bound from below of it, in a fraction of the time. */
double galvatron_fill_bound(const struct galvatron_stage *stage);

#endif
