/* traces.h - when the instructions of one step of a job ran, on all of its ranks.
 *
 * Ranks tell of the same steps, each in records of their order. The newest step that all of them
 * have told of is kept, and the one that is arriving; a newer one that begins to arrive replaces
 * it. What is kept of a job has a limit: a rank of which the step would go beyond it is kept
 * without its times, and said to be so by having fewer than its total. */
#ifndef COORDINATOR_TELEMETRY_TRACES_H
#define COORDINATOR_TELEMETRY_TRACES_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACES_INSTRUCTIONS_MAX 32768       /* times of one rank */
#define TRACES_BYTES_MAX ((size_t)32 << 20) /* times of one step of a job */

struct trace_record {
    uint32_t epoch;
    uint64_t step;
    size_t rank, rank_count;
    uint64_t unix_ns;                  /* when the first instruction began */
    uint64_t total;                    /* instructions of the step */
    uint64_t count, first;             /* that come, and where this record begins among them */
    const uint64_t *begin_ns, *end_ns; /* since unix_ns */
    size_t here;                       /* of this record */
};

/* Of one rank. */
struct trace {
    uint64_t unix_ns, total;
    uint64_t *begin_ns, *end_ns;
    size_t count;           /* of the times that are kept */
    uint64_t told, arrived; /* that come, and that have come */
    bool begun;
};

struct trace_step {
    uint32_t epoch;
    uint64_t step; /* 0: none */
    struct trace *ranks;
    size_t rank_count, done;
    size_t bytes;
};

/* Zeroed to begin with. */
struct traces {
    struct trace_step newest, arriving;
};
void traces_finish(struct traces *traces);
/* Of all times that are kept. */
size_t traces_bytes(const struct traces *traces);

/* -EINVAL: not a record, or not the one that was to come. -ESTALE: of an earlier step than the one
 * that arrives. */
int traces_add(struct traces *traces, const struct trace_record *record, struct error *err);

#endif
