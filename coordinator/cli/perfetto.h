/* perfetto.h - a step's instructions over time, in the JSON format of Chrome's tracing and
 * Perfetto.
 *
 * A rank is a "process" of the format, and each of its queues has two "threads": predicted and
 * measured. Every instruction of a step is one event, in its queue's order, with its name, its
 * section as the category, and as arguments its block, micro-batch and, for a message, peer. Times
 * are microseconds from the beginning of the step. */
#ifndef COORDINATOR_CLI_PERFETTO_H
#define COORDINATOR_CLI_PERFETTO_H

#include "common/program/program.h"
#include "coordinator/cli/planned.h"

/* Threads of the compute queue; those of communication follow. */
enum perfetto_track { PERFETTO_PREDICTED, PERFETTO_MEASURED, PERFETTO_TRACKS };

/* Row of a table of flags for the output file. */
/* clang-format off */
#define PERFETTO_FLAG(type, member)                                                             \
    {"to", 'o', FLAG_TEXT, offsetof(type, member), "FILE", "where to write it (stdout)"}
/* clang-format on */

struct perfetto {
    FILE *out;
    char *text;
    size_t size;
    struct program **programs; /* of all ranks */
    int count;
    bool begun; /* an event has been written */
};

/* Lower all ranks of the plan. Errors of lower(); the caller finishes *timeline in any case. */
int perfetto_begin(struct perfetto *perfetto, const struct planned *planned, struct error *err);
/* Simulate the step on the devices of planned_rate(). Errors of shared_cores_order() and
 * simulate(). */
int perfetto_predict(struct perfetto *perfetto, const struct planned *planned, struct error *err);
/* Add the first `count` instructions of a rank's training step, with begin and end in nanoseconds
 * after base_ns, which itself counts from the beginning of the step. */
void perfetto_measure(struct perfetto *perfetto, int rank, uint64_t base_ns,
                      const uint64_t *begin_ns, const uint64_t *end_ns, size_t count);
/* Write to a file, or to stdout if path is NULL; nothing may be added afterwards. A negative errno
 * with a message. */
int perfetto_write(struct perfetto *perfetto, const char *path, struct error *err);
void perfetto_finish(struct perfetto *perfetto);

#endif
