/* data.h - what a job trains on: a corpus of tokens, cut into windows, in an order that every
 * rank can compute.
 *
 * The corpus is cut into windows of seq tokens; the input of a sample is its window, the target
 * of each token the token after it. The last windows are held out (job's eval.holdout): no token
 * of theirs is ever in a training sample, neither as input nor as target.
 *
 * Samples are numbered through the whole training: sample p of step k is k * global_batch + p.
 * Sample i is window i % n of epoch i / n, each epoch a permutation of the n training windows
 * that depends on the job's seed only. So which tokens a step sees is the same under every plan,
 * and any rank can fill just its part of the batch. Held out samples are the windows in order;
 * past their end come ignored ones, so that evaluation may use batches of any size.
 *
 * A source does not change once it is open: threads may share it. */
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

/* Map what the job's data section names; relative paths count from the working directory. The
 * job may be destroyed afterwards. -errno with the path when a file cannot be read, -EINVAL with
 * the sizes when there is too little for one window or for the holdout. */
int data_open(const struct job_config *job, struct data_source **out, struct error *err);
/* NULL is fine. */
void data_close(struct data_source *source);

/* Tokens of the corpus. */
uint64_t data_size(const struct data_source *source);
/* A file of the corpus as it is here: the whole of it, header and all, and file_hash() of it. */
struct data_file {
    char *path;
    uint64_t size, hash;
};
#define DATA_FILES_MAX 256
/* The files in their order, how many is returned; yours, for data_files_free. Beyond
 * DATA_FILES_MAX the last one stands for all that are left: their sizes are added, and their
 * paths, sizes and hashes are hashed together. Reads up to 64 MiB of each file. */
size_t data_files(const struct data_source *source, struct data_file **out);
void data_files_free(struct data_file *files, size_t count);
/* Samples of an epoch, and held out samples (0 without holdout). */
uint64_t data_samples(const struct data_source *source, enum data_split split);

/* Fill out, (sample_high - sample_low, seq_high - seq_low), row-major, with the token ids of
 * samples first_sample + [sample_low, sample_high) at places [seq_low, seq_high), or with their
 * targets. Samples past the end of the holdout are tokens 0 with DATA_IGNORED targets. */
void data_fill(const struct data_source *source, enum data_split split, uint64_t first_sample,
               int64_t sample_low, int64_t sample_high, int64_t seq_low, int64_t seq_high,
               bool targets, int32_t *out);
/* How many targets of samples first_sample + [0, samples) are not DATA_IGNORED. */
uint64_t data_targets(const struct data_source *source, enum data_split split,
                      uint64_t first_sample, uint64_t samples);

#endif
