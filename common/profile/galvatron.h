/* galvatron.h - profiles in the form of the Galvatron project: its own JSON files, as its profilers
 * write them.
 *
 * Of a model: computation_profiling_*.json (milliseconds of a forward pass, per layer and sample)
 * and memory_profiling_*.json (MB; of parameters in f32). Of machines: allreduce_bandwidth_*.json,
 * p2p_bandwidth_*.json (GB/s) and overlap_coefficient.json. Keys with and without the sequence's
 * length are read, as the project's versions wrote them. Its MB are 2^20 bytes, and a GB/s is a MB
 * in a millisecond. */
#ifndef COMMON_PROFILE_GALVATRON_H
#define COMMON_PROFILE_GALVATRON_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By powers of two: index i is that of 2^i. 0: not there. */
#define GALVATRON_LEVELS 11
#define GALVATRON_TIMES_MAX 128

struct galvatron_time {
    int batch; /* 0: of any */
    double ms; /* per sample */
};

struct galvatron_times {
    struct galvatron_time items[GALVATRON_TIMES_MAX]; /* by batch */
    size_t count;
};

/* Embedding and head together, or one of them: by the degree of tensor parallelism. */
struct galvatron_other {
    double states_mb[GALVATRON_LEVELS];
    double activation_mb[GALVATRON_LEVELS]; /* per sample */
};

struct galvatron_profile {
    bool mixed;                          /* 16 bits: by the file's name */
    bool sequence;                       /* memory was measured with sequence parallelism */
    struct galvatron_times layer, other; /* of forward passes */
    double parameter_mb;                 /* of a layer, in f32 */
    double activation_mb[GALVATRON_LEVELS], checkpoint_mb; /* of a layer, per sample */
    struct galvatron_other alone, first, last;             /* of one stage; of several */
    double allreduce_gb_s[2][GALVATRON_LEVELS];            /* [neighbours?] */
    double p2p_gb_s[GALVATRON_LEVELS];                     /* by stages */
    double overlap; /* how much slower computation and communication are beside each other */
};

/* The files of two folders, which may be one; for sequences of this length. -errno where a file
 * cannot be read; -EINVAL with the file and the member that is missing or wrong. */
int galvatron_load(const char *model_folder, const char *machine_folder, int64_t seq,
                   struct galvatron_profile *out, struct error *err);

/* Of the largest batch that is not larger, or of the smallest: per sample. */
double galvatron_ms(const struct galvatron_times *times, double batch);
/* Index of 2^i; -1: it is no power of two, or too large. */
int galvatron_level(int64_t number);

#endif
