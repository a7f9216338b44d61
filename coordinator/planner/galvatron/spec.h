/* spec.h - what Galvatron's search is told besides profiles: the model's layers, the machines, and
 * the flags that change its formula.
 *
 * A model may have layers of several types, in order: all of the first type, then all of the
 * second. A spec is a JSON object, or the member "spec" of one:
 *
 *   {"model": "t5-3B", "nodes": 2, "gpus_per_node": 8, "memory_GB": 16,
 *    "layers": [{"hidden_size": 1024, "seq_len": 512, "layer_num": 24}, ...],
 *    "time_mode": "static", "memory_mode": "static", "sequence_parallel": false, ...}
 *
 * Instead of its own members it may hold "flags": the words of that project's command line. */
#ifndef COORDINATOR_PLANNER_GALVATRON_SPEC_H
#define COORDINATOR_PLANNER_GALVATRON_SPEC_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define GALVATRON_TYPES_MAX 16
#define GALVATRON_LAYERS_MAX 4096
#define GALVATRON_DEVICES_MAX 65536

/* How a profile is read: each value as it stands (static); a line of total time over batch sizes;
 * or curves over lengths of sequences, with memory in proportion to the longest. AUTO: by what the
 * file holds. */
enum galvatron_mode { GALVATRON_AUTO, GALVATRON_STATIC, GALVATRON_BATCH, GALVATRON_SEQUENCE };

/* The layers of one type. */
struct galvatron_type {
    int64_t hidden, seq;
    int count;
};

/* Whether a choice was made, or what the profiles hold decides. */
enum galvatron_choice { GALVATRON_NO, GALVATRON_YES, GALVATRON_AS_PROFILED };

struct galvatron_spec {
    char model[64]; /* "": has no name */
    struct galvatron_type types[GALVATRON_TYPES_MAX];
    int type_count;
    int nodes, gpus_per_node;
    double memory_gb;
    int64_t batch; /* samples per step; 0: not told */
    enum galvatron_mode time_mode, memory_mode;
    enum galvatron_choice sequence_parallel;
    enum galvatron_choice mixed; /* 16 bits where that project mixes precisions */
    bool async_grad_reduce;      /* gradients are reduced in every micro-batch's backward pass */
    bool zero2; /* data parallelism without zero 3 shards gradients and optimizer (zero 2) */
    bool gpipe; /* instead of 1F1B */
    bool measured_collectives; /* sp_space tp+sp: times of collectives by size, and Ulysses */
    bool global_buffer;        /* one buffer for what sequence parallelism gathers */
    int max_tp;
    double context_mb;  /* of a device, before anything is placed on it */
    double cost_factor; /* of the time of layers */
    int64_t hidden_max; /* for the global buffer; 0: the widest layer's */
};

/* As that project's search has it if nothing is said. */
struct galvatron_spec galvatron_spec_default(void);
/* Read a spec from a file into *out, which says what holds if the file does not; `batch_asked` or
 * the `global_bsz` of a plan beside it is the batch. -EINVAL with file and key. *out is written on
 * success only. */
int galvatron_spec_read(const char *path, struct galvatron_spec *out, struct error *err);
/* -EINVAL: something that every spec has to say was said nowhere. */
int galvatron_spec_check(const struct galvatron_spec *spec, struct error *err);

int galvatron_devices(const struct galvatron_spec *spec);
int galvatron_layers(const struct galvatron_spec *spec);
/* The type of a layer. */
int galvatron_type_of(const struct galvatron_spec *spec, int layer);
/* Memory of a device; and how much of it is set aside before anything is placed: a fifth if there
 * are more than 20 GB. */
int64_t galvatron_budget_mb(const struct galvatron_spec *spec);
int64_t galvatron_reserve_mb(const struct galvatron_spec *spec);

#endif
