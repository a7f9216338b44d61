/* ranks.h - trains a model on ranks that are threads of this process, each bound to a core. */
#ifndef BENCH_TRAINING_RANKS_H
#define BENCH_TRAINING_RANKS_H

#include "bench/bench.h"
#include "bench/division.h"

#define RANKS_MAX 2
#define RANKS_STEPS 3 /* measured, after one that is not */

/* Train on such tokens; returns the tokens per second of all ranks. Errors end the process. */
double ranks_throughput(const struct graph *graph, const struct division *division, int batch,
                        const struct bench_tokens *tokens);

#endif
