/* world.h - a small model, a plan, and the programs of all its ranks. */
#ifndef TESTS_COMMON_PROGRAM_WORLD_H
#define TESTS_COMMON_PROGRAM_WORLD_H

#include "common/program/lower.h"

struct world {
    struct graph *graph;
    struct plan *plan;
    struct program **programs; /* per rank */
    int ranks;
};

/* A GPT of hidden 24, 4 heads, seq 12, vocab 36, ffn 48. */
struct graph *world_graph(int layers);
/* The same sizes in another family. */
struct graph *world_graph_of(const char *family, int layers);
/* Takes graph and plan. A plan that does not lower fails the test. */
struct world world_create(struct graph *graph, struct plan *plan);
/* 1 to 4 layers, a random plan of at most 12 ranks, 8 samples. */
struct world world_random(uint64_t seed);
/* The same on one queue. */
void world_in_turn(struct world *world);
void world_destroy(struct world *world);

#endif
