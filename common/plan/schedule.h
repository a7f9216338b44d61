/* schedule.h - the order of forwards and backwards on a stage: one file per schedule in
 * schedules/, one row in schedules.c. Pure functions of (stage, stages, micro-batches). */
#ifndef COMMON_PLAN_SCHEDULE_H
#define COMMON_PLAN_SCHEDULE_H

#include "common/graph/operation.h"

#include <stddef.h>

struct event {
    enum direction direction;
    int micro_batch;
    int slot; /* where its activations lie between forward and backward */
};

struct schedule {
    const char *name;
    /* Fills 2 x micro_batches events (direction and micro-batch) in order. Every forward comes
     * before its backward, and both directions in the order of micro-batches on all stages. */
    void (*order)(int stage, int stages, int micro_batches, struct event *events);
    /* So many micro-batches are in flight on a stage at most, on none more than on those before. */
    int (*in_flight)(int stage, int stages, int micro_batches);
};

/* Ends with NULL. On no stage does any need fewer slots than the first. */
extern const struct schedule *const schedules[];
const struct schedule *schedule_find(const char *name);
/* "1f1b, gpipe": the names there are, for a sentence; at most size characters. */
char *schedule_list(char *out, size_t size);

/* The order, with slots: the lowest free one at each forward. Returns how many there are. */
int schedule_events(const struct schedule *schedule, int stage, int stages, int micro_batches,
                    struct event *events);

#endif
