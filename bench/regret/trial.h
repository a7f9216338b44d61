/* trial.h - trains several plans by turns, and measures their step times and memory. */
#ifndef BENCH_REGRET_TRIAL_H
#define BENCH_REGRET_TRIAL_H

#include "common/plan/plan.h"
#include "common/program/program.h"
#include "worker/collectives/collective.h"

#define TRIAL_RANKS_MAX 4

struct trial {
    const struct plan *plan;
    double step_s, best_step_s; /* the median and the least of several rounds */
    /* Of the rank with most: bytes mapped for its regions, and how many of them are resident. */
    uint64_t reserved_bytes, resident_bytes;
    struct program *programs[TRIAL_RANKS_MAX];
    /* Seconds per step of each rank's instructions, each in the round in which it took least. */
    double *seconds[TRIAL_RANKS_MAX];
};

struct trial_setting {
    const struct graph *graph;
    const struct collectives *library;
    int ranks; /* one thread each, bound to its share of the cores as the ranks of a job are */
    int64_t seq;
};

/* Train all plans, in rounds, and fill in everything but the plans. Errors end the process. */
void trials_run(const struct trial_setting *setting, struct trial *trials, size_t count);
/* Free what trials_run() filled in. */
void trial_finish(struct trial *trial);

#endif
