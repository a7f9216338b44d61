/* ranks.h - a model that trains on ranks which are threads of this process, each on a core. */
#ifndef BENCH_TRAINING_RANKS_H
#define BENCH_TRAINING_RANKS_H

#include "bench/bench.h"
#include "bench/division.h"

#define RANKS_MAX 2
#define RANKS_STEPS 3 /* that are measured, behind one that is not */

/* Tokens per second of all ranks together, which learn such tokens. */
double ranks_throughput(const struct graph *graph, const struct division *division, int batch,
                        const struct bench_tokens *tokens);

#endif
