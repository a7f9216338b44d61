/* ranks.h - a model that trains on ranks which are threads of this process, each on a core. */
#ifndef BENCH_TRAINING_RANKS_H
#define BENCH_TRAINING_RANKS_H

#include "common/graph/graph.h"
#include "common/plan/plan.h"

#define RANKS_MAX 2
#define RANKS_STEPS 3 /* that are measured, behind one that is not */

struct setting {
    const char *name;
    int stages;
    const char *role; /* of the one axis, of size 2; NULL: none */
    int micro_batches;
};

/* For steps of so many samples; yours. */
struct plan *ranks_plan(const struct graph *graph, const struct setting *setting, int batch);
/* Tokens per second of all ranks together. */
double ranks_throughput(const struct graph *graph, const struct setting *setting, int batch);

#endif
