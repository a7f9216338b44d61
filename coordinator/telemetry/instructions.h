/* instructions.h - predicted and measured times of a plan's instructions.
 *
 * Instructions are grouped by block type and class ("layer", "matmul forward"): few enough to list,
 * fine enough to tell which formula is off. A record sums up `count` instructions of one rank; sums
 * are kept over all records, medians over the newest. */
#ifndef COORDINATOR_TELEMETRY_INSTRUCTIONS_H
#define COORDINATOR_TELEMETRY_INSTRUCTIONS_H

#include "common/base/error.h"

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
};
void instructions_clear(struct instructions *instructions);
void instructions_finish(struct instructions *instructions);

/* -EINVAL: the record is invalid. -ENOSPC: there are too many kinds. */
int instructions_add(struct instructions *instructions, const struct instruction_record *record,
                     struct error *err);

/* Median seconds of one instruction, and median of measured over predicted (1: as predicted; 0:
 * there was no prediction). */
double instruction_time_median_s(const struct instruction_sums *kind);
double instruction_ratio_median(const struct instruction_sums *kind);

#endif
