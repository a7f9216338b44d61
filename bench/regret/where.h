/* where.h - finds the instructions whose time was predicted worst. */
#ifndef BENCH_REGRET_WHERE_H
#define BENCH_REGRET_WHERE_H

#include "bench/regret/trial.h"
#include "coordinator/planner/planner.h"

enum where_kind { WHERE_KERNELS, WHERE_MEMORY, WHERE_MOVES, WHERE_KINDS };
extern const char *const where_names[WHERE_KINDS];

/* Seconds per step, as a mean over the ranks. */
struct where_times {
    double predicted, measured;
};

struct where_class {
    char name[48];
    enum where_kind kind;
    struct where_times times; /* summed over all plans added */
};

/* Times of the plans of one job, by class of instruction; zeroed at first. */
struct where {
    struct where_class *classes;
    size_t count, capacity;
};

/* Simulate a plan's step and add it, with the measured one, to the classes and to `kinds`. In both
 * of them, moves include waiting for ranks that arrive later. */
void where_add(struct where *where, const struct planner_request *request,
               const struct trial *trial, struct where_times kinds[WHERE_KINDS]);
/* Print the `rows` classes with the largest differences. Sorts the classes. */
void where_print(struct where *where, size_t rows);
void where_finish(struct where *where);

#endif
