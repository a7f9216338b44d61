/* division.h - how a suite divides a model over a few ranks. */
#ifndef BENCH_DIVISION_H
#define BENCH_DIVISION_H

#include "common/graph/graph.h"
#include "common/plan/plan.h"

struct division {
    const char *name;
    int stages;       /* 1 or more, with equally many blocks each, as far as they divide */
    const char *role; /* role of the only mesh axis, which has size 2; NULL: no axis */
    int micro_batches, zero;
};

/* The plan for steps of `batch` samples, owned by the caller. */
struct plan *division_plan(const struct division *division, const struct graph *graph, int batch);

#endif
