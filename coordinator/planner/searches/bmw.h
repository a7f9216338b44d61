/* bmw.h - the walk over partitions of the search bmw, apart from what stages cost. */
#ifndef COORDINATOR_PLANNER_SEARCHES_BMW_H
#define COORDINATOR_PLANNER_SEARCHES_BMW_H

#include <stdbool.h>
#include <stdint.h>

/* A stage, planned for itself. */
struct bmw_stage {
    double seconds;
    uint64_t bytes;
    bool fits; /* there is a plan for it at all */
};

/* Partitions are arrays of `stages` ends: stage i has the blocks before ends[i] that no stage
 * before it has, one at least. */
struct bmw_walk {
    int blocks, stages;
    void *context;
    struct bmw_stage (*plan)(void *context, int stage, int first, int end);
    /* Called with every partition that is taken from the queue and whose stages all fit. */
    void (*visit)(void *context, const int *ends);
};

/* Begin with the memory-balanced partition; see bmw.c. */
void bmw_walk(const struct bmw_walk *walk, const int *memory_balanced, const int *time_balanced);

/* The partition whose largest stage is smallest, by the size of a run of blocks on a stage. */
void bmw_balance(int blocks, int stages,
                 double (*size)(const void *context, int stage, int first, int end),
                 const void *context, int *ends);

#endif
