/* division.h - how a suite divides a model over a rank or two. */
#ifndef BENCH_DIVISION_H
#define BENCH_DIVISION_H

#include "common/graph/graph.h"
#include "common/plan/plan.h"

struct division {
    const char *name;
    int stages;       /* 1 or 2; of two, each has half of the blocks */
    const char *role; /* of the one axis, of size 2; NULL: none */
    int micro_batches, zero;
};

/* For steps of so many samples; yours. */
struct plan *division_plan(const struct division *division, const struct graph *graph, int batch);

#endif
