/* timeline.h - when instructions run, as the JSON that Chrome's tracing and Perfetto read.
 *
 * A rank is a "process" of the format, and each of its queues has two "threads": what was
 * predicted, and what was measured. Every instruction of a step is one event, in its queue's order:
 * its name, its section as the category, and its block, micro-batch and, of a message, peer as
 * arguments. Times are microseconds from the beginning of the step. */
#ifndef COORDINATOR_CLI_DRAWINGS_TIMELINE_H
#define COORDINATOR_CLI_DRAWINGS_TIMELINE_H

#include "common/program/program.h"
#include "coordinator/cli/plans/planned.h"

/* Of the computing queue; those of communication follow. */
enum timeline_track { TIMELINE_PREDICTED, TIMELINE_MEASURED, TIMELINE_TRACKS };

/* The flag that says where to: a row of a table of flags. */
/* clang-format off */
#define TIMELINE_FLAG(type, member)                                                             \
    {"to", 'o', FLAG_TEXT, offsetof(type, member), "FILE", "where to write it (stdout)"}
/* clang-format on */

struct timeline {
    FILE *out;
    char *text;
    size_t size;
    struct program **programs; /* of all ranks */
    int count;
    bool begun; /* an event is there */
};

/* Lower all ranks of the plan. -errno of lower; *timeline is to be finished, whatever came out. */
int timeline_begin(struct timeline *timeline, const struct planned *planned, struct error *err);
/* Simulate the step on the devices of planned->rates. -errno of simulate. */
int timeline_predict(struct timeline *timeline, const struct planned *planned, struct error *err);
/* The first `count` instructions of a rank's training step: they began and ended so many
 * nanoseconds behind base_ns, which is behind the beginning of the step. */
void timeline_measure(struct timeline *timeline, int rank, uint64_t base_ns,
                      const uint64_t *begin_ns, const uint64_t *end_ns, size_t count);
/* As a file, or to stdout where path is NULL; nothing may be added then. -errno in words. */
int timeline_write(struct timeline *timeline, const char *path, struct error *err);
void timeline_finish(struct timeline *timeline);

#endif
