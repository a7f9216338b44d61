/* profile.h - profiles in the JSON files that the Galvatron project's profilers write.
 *
 * A model has computation_*.json (forward milliseconds per layer and sample) and memory_*.json (MB;
 * parameters in f32). Machines of n nodes with g devices have allreduce_bandwidth_, p2p_bandwidth_
 * (GB/s) and, if collectives are wanted by size, sp_time_ (ms), each followed by
 * NnodesNgpus_per_node.json, and overlap_coefficient.json. Keys are read with and without the
 * sequence length, because versions of the project differ in that. Its MB are 2^20 bytes, and its
 * GB/s are MB per millisecond. */
#ifndef COORDINATOR_PLANNER_GALVATRON_PROFILE_H
#define COORDINATOR_PLANNER_GALVATRON_PROFILE_H

#include "coordinator/planner/galvatron/spec.h"

#define GALVATRON_TABLE_MAX 32

/* What was measured for some degrees, group sizes or message sizes. */
struct galvatron_table {
    int count;
    int keys[GALVATRON_TABLE_MAX];
    double values[GALVATRON_TABLE_MAX];
};

/* A straight line: times per sample are one through 0. */
struct galvatron_line {
    double slope, fixed;
};

struct galvatron_layer {
    struct galvatron_line forward_ms; /* by samples */
    double parameter_mb;              /* in f32 */
    /* Per sample: what is kept for backward, by the degree of tensor parallelism; and with full
     * recomputation (0: not measured). */
    struct galvatron_table activation_mb;
    double checkpoint_mb;
};

/* Memory of the embedding, the head or both, by the degree of tensor parallelism. */
struct galvatron_other {
    struct galvatron_table states_mb;     /* parameters, gradients and optimizer state */
    struct galvatron_table activation_mb; /* per sample */
};

/* A collective over a group, by the size of its messages: one all-gather or reduce-scatter, half of
 * the all-reduce that was measured, or one all-to-all. */
struct galvatron_collective {
    bool all_to_all;
    int group;
    struct galvatron_table ms; /* by MB */
    struct galvatron_line line;
};

struct galvatron_profile {
    bool mixed;             /* in 16 bits with masters in f32 */
    bool sequence_parallel; /* tensor parallelism divides sequences, too */
    struct galvatron_layer layers[GALVATRON_TYPES_MAX]; /* per type */
    struct galvatron_line other_ms; /* forward of embedding and head, by samples */
    /* Embedding and head: both on the only stage; the embedding on the first of several stages; the
     * head on the last. */
    struct galvatron_other alone, first, last;
    /* [1]: among neighbouring ranks, [0]: among strided ones; by the group's size. */
    struct galvatron_table allreduce_gb_s[2];
    struct galvatron_table p2p_gb_s; /* by the number of stages */
    double overlap; /* slowdown of computation and communication that run at the same time */
    struct galvatron_collective collectives[GALVATRON_TABLE_MAX];
    int collective_count;
};

/* Whether there is a value for the key, which becomes *out. */
bool galvatron_find(const struct galvatron_table *table, int key, double *out);
/* Add a value, or replace it; false: the table is full. */
bool galvatron_put(struct galvatron_table *table, int key, double value);
double galvatron_at(const struct galvatron_line *line, double x);

/* Read the files of two folders, which may be the same. -ENOENT or another negative errno when a
 * file cannot be read; -EINVAL with the file and the key that is missing or wrong. *out is written
 * on success only. */
int galvatron_load(const char *model_folder, const char *machine_folder,
                   const struct galvatron_spec *spec, struct galvatron_profile *out,
                   struct error *err);

#endif
