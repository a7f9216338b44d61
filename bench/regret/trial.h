/* trial.h - plans that train beside each other, in turns: what a step takes, and what memory. */
#ifndef BENCH_REGRET_TRIAL_H
#define BENCH_REGRET_TRIAL_H

#include "common/plan/plan.h"
#include "common/program/program.h"
#include "worker/collectives/collective.h"

#define TRIAL_RANKS_MAX 4

struct trial {
    const struct plan *plan;
    double step_s, best_step_s; /* the median of some rounds, and the least */
    /* Of the rank that has most: what was mapped for its regions, and of that what was touched. */
    uint64_t reserved_bytes, resident_bytes;
    struct program *programs[TRIAL_RANKS_MAX];
    double *seconds[TRIAL_RANKS_MAX]; /* of each rank's instructions in a step, of the best round */
};

struct trial_setting {
    const struct graph *graph;
    const struct collectives *library;
    int ranks; /* as many threads; each bound to its share of the cores, as those of a job are */
    int64_t seq;
};

/* All of them, in rounds; fills in all but the plans. Errors end the process. */
void trials_run(const struct trial_setting *setting, struct trial *trials, size_t count);
/* What it was filled with. */
void trial_finish(struct trial *trial);

#endif
