/* where.h - which instructions take longer, or shorter, than was predicted. */
#ifndef BENCH_REGRET_WHERE_H
#define BENCH_REGRET_WHERE_H

#include "bench/regret/trial.h"
#include "coordinator/planner/planner.h"

enum where_kind { WHERE_KERNELS, WHERE_MEMORY, WHERE_MOVES, WHERE_KINDS };
extern const char *const where_names[WHERE_KINDS];

/* Seconds of a step, mean of its ranks. */
struct where_times {
    double predicted, measured;
};

struct where_class {
    char name[48];
    enum where_kind kind;
    struct where_times times; /* of all plans that were added */
};

/* Of the plans of one job, class by class: zeroed to begin with. */
struct where {
    struct where_class *classes;
    size_t count, capacity;
};

/* A plan's simulated step beside the measured one. Moves include waiting for those who come later,
 * in both of them. */
void where_add(struct where *where, const struct planner_request *request,
               const struct trial *trial, struct where_times kinds[WHERE_KINDS]);
/* The classes that are furthest off, `rows` of them, for people. */
void where_print(struct where *where, size_t rows);
void where_finish(struct where *where);

#endif
