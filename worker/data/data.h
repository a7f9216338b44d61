/* data.h - what a job trains on: a corpus of tokens, cut into windows, in an order that every rank
 * can compute.
 *
 * The corpus is cut into windows of seq tokens. The input of a sample is its window; the target of
 * each token is the token after it. The last windows are held out (the job's eval.holdout): none of
 * their tokens is ever in a training sample, neither as input nor as target. Or else windows of
 * other files are (eval.data).
 *
 * Samples are numbered through the whole training: sample p of step k is k * global_batch + p.
 * Sample i is window i % n of epoch i / n, where each epoch is a permutation of the n training
 * windows that depends on the job's seed only. So which tokens a step sees is the same under every
 * plan, and any rank can fill just its part of the batch. Held-out samples are the held-out windows
 * in order, all of them or, evenly spread, as many as eval.samples says; ignored samples follow
 * them, so that evaluation may use batches of any size.
 *
 * A source is immutable once it is open, so threads may share it. */
#ifndef WORKER_DATA_DATA_H
#define WORKER_DATA_DATA_H

#include "common/base/error.h"
#include "common/config/job.h"

#include <stdbool.h>
#include <stdint.h>

/* The target of a token that does not count. */
#define DATA_IGNORED (-1)

enum data_split { DATA_TRAIN, DATA_HOLDOUT };

struct data_source;

/* Map the files that the job's data section names; relative paths are relative to the working
 * directory. The job may be destroyed afterwards. `known` is how many tokens the job's tokenizer
 * has; 0: nobody knows. -errno with the path if a file cannot be read; -ERANGE if a token is not
 * one of the tokenizer's, or of the model's; -EINVAL with the sizes if there is too little data for
 * one window, or for the holdout. */
int data_open(const struct job_config *job, int64_t known, struct data_source **out,
              struct error *err);
/* Accepts NULL. */
void data_close(struct data_source *source);

/* Number of tokens in the corpus, without those of eval.data. */
uint64_t data_size(const struct data_source *source);
/* A file that is read: its whole size, including any header, and file_hash() of it. */
struct data_file {
    char *path;
    uint64_t size, hash;
};
#define DATA_FILES_MAX 256
/* List the files in order; returns their number, and the caller frees *out with data_files_free. If
 * there are more than DATA_FILES_MAX, the last entry stands for all that are left: their sizes are
 * added up, and their paths, sizes and hashes hashed together. Reads up to 64 MiB of each file. */
size_t data_files(const struct data_source *source, struct data_file **out);
void data_files_free(struct data_file *files, size_t count);
/* Number of samples in an epoch, or of held-out samples (0 without a holdout). */
uint64_t data_samples(const struct data_source *source, enum data_split split);

/* Fill out, (sample_high - sample_low, seq_high - seq_low), row-major, with the token ids of
 * samples first_sample + [sample_low, sample_high) at positions [seq_low, seq_high), or with their
 * targets. Samples beyond the end of the holdout are tokens 0 with targets DATA_IGNORED. */
void data_fill(const struct data_source *source, enum data_split split, uint64_t first_sample,
               int64_t sample_low, int64_t sample_high, int64_t seq_low, int64_t seq_high,
               bool targets, int32_t *out);
/* How many targets of samples first_sample + [0, samples) are not DATA_IGNORED. */
uint64_t data_targets(const struct data_source *source, enum data_split split,
                      uint64_t first_sample, uint64_t samples);

/* The order of samples, a seeded permutation that is computed, not stored: the window at a position
 * of an epoch, out of `count` windows; position < count <= 2^62. For every (seed, epoch) this is a
 * bijection on 0 .. count-1. */
uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position);

#endif
