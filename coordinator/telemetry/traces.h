/* traces.h - when the instructions of one step of a job ran, on all of its ranks.
 *
 * Ranks report the same steps, each in records that arrive in order. The newest step reported by
 * all of them is kept, along with the one that is arriving, which is replaced as soon as a newer
 * one begins to arrive. Memory per job is limited: a rank whose times would exceed it is kept
 * without them, which shows in its count being less than its total. */
#ifndef COORDINATOR_TELEMETRY_TRACES_H
#define COORDINATOR_TELEMETRY_TRACES_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACES_INSTRUCTIONS_MAX 32768       /* times per rank */
#define TRACES_BYTES_MAX ((size_t)32 << 20) /* times of one step of a job */

struct trace_record {
    uint32_t epoch;
    uint64_t step;
    size_t rank, rank_count;
    uint64_t unix_ns; /* when the first instruction began */
    uint64_t total;   /* instructions of the step */
    /* count: how many are reported in all; first: where this record begins among them */
    uint64_t count, first;
    const uint64_t *begin_ns, *end_ns; /* relative to unix_ns */
    size_t here;                       /* instructions in this record */
};

/* The times of one rank. */
struct trace {
    uint64_t unix_ns, total;
    uint64_t *begin_ns, *end_ns;
    size_t count;           /* of the times that are kept */
    uint64_t told, arrived; /* how many are to come in all, and how many have arrived */
    bool begun;
};

struct trace_step {
    uint32_t epoch;
    uint64_t step; /* 0: none */
    struct trace *ranks;
    size_t rank_count, done;
    size_t bytes;
};

/* Initialize to zero. */
struct traces {
    struct trace_step newest, arriving;
};
void traces_finish(struct traces *traces);
/* Bytes of all times that are kept. */
size_t traces_bytes(const struct traces *traces);

/* Add a record. -EINVAL: it is invalid, or not the next one of its rank. -ESTALE: it is of an
 * earlier step than the one arriving, or of one that is complete. */
int traces_add(struct traces *traces, const struct trace_record *record, struct error *err);

#endif
