/* instructions.h - what instructions of a plan were predicted to take and what they took.
 *
 * Instructions are told apart by block type and class ("layer", "matmul forward"): few enough to
 * list, fine enough to say which formula is off. A record is the sum over `count` instructions of
 * one rank; sums are kept over all records, medians over the newest. */
#ifndef COORDINATOR_TELEMETRY_INSTRUCTIONS_H
#define COORDINATOR_TELEMETRY_INSTRUCTIONS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define INSTRUCTIONS_NAME_SIZE 64
#define INSTRUCTIONS_MAX 1024  /* kinds in one plan */
#define INSTRUCTIONS_WINDOW 63 /* records that medians are taken over */

struct instruction_record {
    const char *block, *class; /* of the instructions */
    uint64_t count;
    double predicted_s, measured_s; /* sums over them */
};

struct instruction_sums {
    char block[INSTRUCTIONS_NAME_SIZE], class[INSTRUCTIONS_NAME_SIZE];
    uint64_t count;
    double predicted_s, measured_s;      /* sums over all records */
    double times_s[INSTRUCTIONS_WINDOW]; /* measured, of one instruction, by record */
    double ratios[INSTRUCTIONS_WINDOW];  /* measured over predicted, by record; a ring */
    size_t record_count, ratio_count;    /* ever; only records with a prediction have a ratio */
};

/* Zeroed to begin with. */
struct instructions {
    struct instruction_sums *kinds; /* by block type, then class */
    size_t count, capacity;
};
void instructions_clear(struct instructions *instructions);
void instructions_finish(struct instructions *instructions);

/* -EINVAL: not a record. -ENOSPC: too many kinds. */
int instructions_add(struct instructions *instructions, const struct instruction_record *record,
                     struct error *err);

/* Lent until the next record; NULL when there is none. */
const struct instruction_sums *instructions_find(const struct instructions *instructions,
                                                 const char *block, const char *class);

/* The median time of one instruction, seconds, and of measured over predicted (1 is as predicted;
 * 0 when there was no prediction). */
double instruction_time_median_s(const struct instruction_sums *kind);
double instruction_ratio_median(const struct instruction_sums *kind);

#endif
