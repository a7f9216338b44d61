/* timeline.h - a step's instructions over time, in the JSON format of Chrome's tracing and
 * Perfetto.
 *
 * A rank is a "process" of the format, and each of its queues has two "threads": predicted and
 * measured. Every instruction of a step is one event, in its queue's order, with its name, its
 * section as the category, and as arguments its block, micro-batch and, for a message, peer. Times
 * are microseconds from the beginning of the step. */
#ifndef COORDINATOR_CLI_DRAWINGS_TIMELINE_H
#define COORDINATOR_CLI_DRAWINGS_TIMELINE_H

#include "common/program/program.h"
#include "coordinator/cli/plans/planned.h"

/* Threads of the compute queue; those of communication follow. */
enum timeline_track { TIMELINE_PREDICTED, TIMELINE_MEASURED, TIMELINE_TRACKS };

/* Row of a table of flags for the output file. */
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
    bool begun; /* an event has been written */
};

/* Lower all ranks of the plan. Errors of lower(); the caller finishes *timeline in any case. */
int timeline_begin(struct timeline *timeline, const struct planned *planned, struct error *err);
/* Simulate the step on the devices of planned->rates. Errors of simulate(). */
int timeline_predict(struct timeline *timeline, const struct planned *planned, struct error *err);
/* Add the first `count` instructions of a rank's training step, with begin and end in nanoseconds
 * after base_ns, which itself counts from the beginning of the step. */
void timeline_measure(struct timeline *timeline, int rank, uint64_t base_ns,
                      const uint64_t *begin_ns, const uint64_t *end_ns, size_t count);
/* Write to a file, or to stdout if path is NULL; nothing may be added afterwards. A negative errno
 * with a message. */
int timeline_write(struct timeline *timeline, const char *path, struct error *err);
void timeline_finish(struct timeline *timeline);

#endif
