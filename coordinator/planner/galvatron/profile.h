/* profile.h - reads profiles in the JSON files that the Galvatron project's profilers write.
 *
 * A model has computation_profiling_*.json (forward milliseconds per layer and sample) and
 * memory_profiling_*.json (MB; parameters in f32). Machines have allreduce_bandwidth_*.json,
 * p2p_bandwidth_*.json (GB/s) and overlap_coefficient.json. Keys are read with and without the
 * sequence length, because versions of the project differ in that. Its MB are 2^20 bytes, and its
 * GB/s are MB per millisecond. */
#ifndef COORDINATOR_PLANNER_GALVATRON_PROFILE_H
#define COORDINATOR_PLANNER_GALVATRON_PROFILE_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of arrays indexed by powers of two: element i is the value for 2^i. 0: not measured. */
#define GALVATRON_LEVELS 11
#define GALVATRON_TIMES_MAX 128

struct galvatron_time {
    int batch; /* samples; 0: the file does not say */
    double ms; /* per sample */
};

struct galvatron_times {
    struct galvatron_time items[GALVATRON_TIMES_MAX]; /* sorted by batch */
    size_t count;
};

/* Memory of the embedding, the head or both, indexed by the degree of tensor parallelism. */
struct galvatron_other {
    double states_mb[GALVATRON_LEVELS];     /* parameters, gradients and optimizer state */
    double activation_mb[GALVATRON_LEVELS]; /* per sample */
};

struct galvatron_profile {
    bool mixed;    /* mixed precision: the computation file's name has _bf16 or _fp16 */
    bool sequence; /* memory was measured with sequence parallelism */
    struct galvatron_times layer, other; /* forward passes: of a layer; of embedding and head */
    double parameter_mb;                 /* of a layer, in f32 */
    /* Of a layer, per sample: what is kept for backward, by the degree of tensor parallelism; and
     * with full recomputation (0: not measured). */
    double activation_mb[GALVATRON_LEVELS], checkpoint_mb;
    /* Embedding and head: both on the only stage; the embedding on the first of several stages; the
     * head on the last. */
    struct galvatron_other alone, first, last;
    /* [1]: among neighbouring ranks, [0]: among strided ones; then by the group's size. */
    double allreduce_gb_s[2][GALVATRON_LEVELS];
    double p2p_gb_s[GALVATRON_LEVELS]; /* by the number of stages */
    double overlap; /* slowdown of computation and communication that run at the same time */
};

/* Read the files of two folders, which may be the same, for sequences of `seq` tokens. -ENOENT or
 * another negative errno when a file cannot be read; -EINVAL with the file and the member that is
 * missing or wrong. *out is written on success only. */
int galvatron_load(const char *model_folder, const char *machine_folder, int64_t seq,
                   struct galvatron_profile *out, struct error *err);

/* Milliseconds per sample, measured with the largest batch up to `batch`, or else the smallest. */
double galvatron_ms(const struct galvatron_times *times, double batch);
/* The i for which `number` is 2^i; -1 when it is no power of two, or too large. */
int galvatron_level(int64_t number);

#endif
