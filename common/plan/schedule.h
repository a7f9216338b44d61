/* schedule.h - pipeline schedules: in which order a stage runs the forwards and backwards of the
 * micro-batches of a step.
 *
 * To add a schedule, write its two functions and its row in schedule.c. They are pure functions of
 * the stage, the number of stages and the number of micro-batches. */
#ifndef COMMON_PLAN_SCHEDULE_H
#define COMMON_PLAN_SCHEDULE_H

#include "common/graph/operation.h"

#include <stddef.h>

/* One forward or backward of one micro-batch. */
struct event {
    enum direction direction;
    int micro_batch;
    int slot; /* the copy of the saved region that keeps its activations until backward */
};

struct schedule {
    const char *name;
    /* Fill in direction and micro-batch of 2 x micro_batches events, in order. Every forward must
     * come before its backward, and on all stages each direction must take the micro-batches in
     * ascending order. */
    void (*order)(int stage, int stages, int micro_batches, struct event *events);
    /* The most micro-batches that are between forward and backward on a stage at any time. Must not
     * grow from one stage to the next. */
    int (*in_flight)(int stage, int stages, int micro_batches);
};

/* All schedules; ends with NULL. The first needs the fewest slots on every stage. */
extern const struct schedule *const schedules[];
/* NULL when unknown. */
const struct schedule *schedule_find(const char *name);
/* Write the names of all schedules as "1f1b, gpipe" for a message, truncated to `size`; returns
 * `out`. */
char *schedule_list(char *out, size_t size);

/* The schedule's order of 2 x micro_batches events, slots included: every forward takes the lowest
 * free slot, its backward frees it. Returns how many slots are needed. */
int schedule_events(const struct schedule *schedule, int stage, int stages, int micro_batches,
                    struct event *events);

#endif
