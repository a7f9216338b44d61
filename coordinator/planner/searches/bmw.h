/* bmw.h - the walk over partitions of blocks into stages that the search bmw makes, separate from
 * the cost of stages so that it can be tested alone. */
#ifndef COORDINATOR_PLANNER_SEARCHES_BMW_H
#define COORDINATOR_PLANNER_SEARCHES_BMW_H

#include <stdbool.h>
#include <stdint.h>

struct instance;
struct plan;

/* A stage, planned in isolation. */
struct bmw_stage {
    double seconds;
    uint64_t bytes;
    bool fits; /* false: no plan for this stage fits */
};

/* A partition is an array of `stages` end indices: stage i has the blocks from ends[i - 1] (0 for
 * the first stage) up to, not including, ends[i], and at least one. */
struct bmw_walk {
    int stages;
    void *context;
    /* Plans blocks [first, end) on a stage. */
    struct bmw_stage (*plan)(void *context, int stage, int first, int end);
    /* Called for every partition taken from the queue whose stages all fit. */
    void (*visit)(void *context, const int *ends);
};

/* Start from the memory-balanced partition and shift blocks towards balanced time; see bmw.c. */
void bmw_walk(const struct bmw_walk *walk, const int *memory_balanced, const int *time_balanced);

/* Fill `ends` with the partition that minimizes the size of the largest stage; size() gives the
 * size of a run of blocks on a stage. */
void bmw_balance(int blocks, int stages,
                 double (*size)(const void *context, int stage, int first, int end),
                 const void *context, int *ends);

/* The plan of a single partition, each stage planned in isolation; NULL: one does not fit, or they
 * do not together. The caller owns it. */
struct plan *bmw_isolated(struct instance *instance, const int *ends);

#endif
