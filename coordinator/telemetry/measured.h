/* measured.h - how long the instructions of a job's plan took: sums over all steps, and traces of
 * few.
 *
 * Sums are grouped by block type and class ("layer", "matmul forward"): few enough to list, fine
 * enough to tell which formula is off. A record sums up `count` instructions of one rank; sums are
 * kept over all records, medians over the newest.
 *
 * A trace tells when the instructions of one step ran, on all ranks. Ranks report the same steps,
 * each in records that arrive in order. The newest step reported by all of them is kept, along with
 * the one that is arriving, which is replaced as soon as a newer one begins to arrive. Memory per
 * job is limited: a rank whose times would exceed it is kept without them, which shows in its count
 * being less than its total. */
#ifndef COORDINATOR_TELEMETRY_MEASURED_H
#define COORDINATOR_TELEMETRY_MEASURED_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTIONS_NAME_SIZE 64
#define INSTRUCTIONS_MAX 1024  /* kinds per plan */
#define INSTRUCTIONS_WINDOW 63 /* records that medians are taken over */

struct instruction_record {
    const char *block, *class; /* block type and class of the instructions */
    uint64_t count;
    double predicted_s, measured_s; /* sums over the instructions */
};

struct instruction_sums {
    char block[INSTRUCTIONS_NAME_SIZE], class[INSTRUCTIONS_NAME_SIZE];
    uint64_t count;
    double predicted_s, measured_s; /* sums over all records */
    /* ring of the newest records: measured time per instruction */
    double times_s[INSTRUCTIONS_WINDOW];
    double ratios[INSTRUCTIONS_WINDOW]; /* ring of the newest records: measured over predicted */
    size_t record_count, ratio_count;   /* totals; only records with a prediction have a ratio */
};

/* Initialize to zero. */
struct instructions {
    struct instruction_sums *kinds; /* sorted by block type, then class */
    size_t count, capacity;
    bool unsaved; /* a store has not been told what they are now */
};
void instructions_clear(struct instructions *instructions);
void instructions_finish(struct instructions *instructions);

/* -EINVAL: the record is invalid. -ENOSPC: there are too many kinds. */
int instructions_add(struct instructions *instructions, const struct instruction_record *record,
                     struct error *err);

/* Append a kind that a store had, in their order, with its medians instead of its records. */
void instructions_restore(struct instructions *instructions, const struct instruction_sums *sums,
                          double time_median_s, double ratio_median);

/* Median seconds of one instruction, and median of measured over predicted (1: as predicted; 0:
 * there was no prediction). */
double instruction_time_median_s(const struct instruction_sums *kind);
double instruction_ratio_median(const struct instruction_sums *kind);

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

/* The mean of the middle two for an even count; 0 for none. Reorders the values. */
double median(double *values, size_t count);

#endif
