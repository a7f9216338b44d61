/* data.c - windows, split and samples, of texts and of tokens in any format; and their order, by a
 * Feistel network with cycle walking.
 *
 * A balanced Feistel network permutes the numbers of 2h bits, whatever its round function is (Luby
 * and Rackoff 1988). If the result is not below count, it is encrypted again until it is. That walk
 * stays on one cycle of the larger permutation, so what remains is a permutation of 0 .. count-1
 * (Black and Rogaway 2002). The domain is less than four times count, so fewer than four walks are
 * needed on average. */
#include "worker/data/data.h"

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/data/files.h"
#include "worker/data/tokens.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct data_source {
    struct files files;
    struct files own; /* of eval.data; none: windows of `files` are held out */
    uint64_t seed;
    uint64_t seq;
    uint64_t train, holdout; /* windows */
    uint64_t evaluated;      /* how many of the held-out windows are samples */
    uint64_t holdout_first;  /* index of the first held-out token */
};

/* n windows need n * seq + 1 tokens, as the last token is only a target. 0: there is not one. */
static int count_windows(const struct files *files, uint64_t seq, uint64_t *out, struct error *err)
{
    *out = files->size ? (files->size - 1) / seq : 0;
    return *out > 0 ? 0
                    : error_set(err, -EINVAL,
                                "%" PRIu64 " tokens are too few for one sample: model.seq %" PRIu64
                                " needs at least %" PRIu64,
                                files->size, seq, seq + 1);
}

/* Cut the corpus. Training and holdout share no token. */
static int cut_windows(struct data_source *source, const struct job_config *job, struct error *err)
{
    uint64_t size = source->files.size, seq = source->seq, windows;
    int rc = count_windows(&source->files, seq, &windows, err);
    if (rc < 0)
        return rc;
    double holdout = job->eval.holdout;
    source->train = windows;
    if (holdout == 0)
        return 0;
    source->holdout = (uint64_t)llround(holdout * (double)windows);
    if (source->holdout == 0)
        return error_set(err, -EINVAL,
                         "%" PRIu64 " tokens make %" PRIu64 " samples of model.seq %" PRIu64
                         ": eval.holdout %g of them is less than one, write %.3g or more",
                         size, windows, seq, holdout, 1 / (double)windows);
    uint64_t held = source->holdout * seq + 1;
    source->holdout_first = size - held;
    source->train = size > held ? (size - held - 1) / seq : 0;
    if (source->train == 0)
        return error_set(err, -EINVAL,
                         "%" PRIu64 " tokens leave no sample of model.seq %" PRIu64
                         " to train on beside an eval.holdout of %" PRIu64 ": at least %" PRIu64
                         " are needed",
                         size, seq, source->holdout, held + seq + 1);
    return 0;
}

/* Files of the same kind as the job's data. */
static int open_files(struct files *files, const struct texts *paths, const struct job_config *job,
                      int64_t known, struct error *err)
{
    const struct job_data *data = &job->data;
    struct token_limit limit = {job->model.vocab, "model.vocab"};
    if (known > 0 && known < limit.size)
        limit = (struct token_limit){
            known, "the size of data.tokenizer, which cannot have made that token,"};
    return data->text.count ? files_open_text(files, paths, job->model.vocab, err)
                            : tokens_open(files, paths, data->format, limit, err);
}

static int open_corpus(struct data_source *source, const struct job_config *job, int64_t known,
                       struct error *err)
{
    const struct job_data *data = &job->data;
    const struct texts *paths = data->text.count ? &data->text : &data->tokens;
    int rc = open_files(&source->files, paths, job, known, err);
    if (rc == 0)
        rc = cut_windows(source, job, err);
    return rc < 0 ? error_prefix(err, rc, "data.%s", data->text.count ? "text" : "tokens") : 0;
}

static int open_own(struct data_source *source, const struct job_config *job, int64_t known,
                    struct error *err)
{
    if (job->eval.data.count == 0)
        return 0;
    int rc = open_files(&source->own, &job->eval.data, job, known, err);
    if (rc == 0)
        rc = count_windows(&source->own, source->seq, &source->holdout, err);
    return rc < 0 ? error_prefix(err, rc, "eval.data") : 0;
}

int data_open(const struct job_config *job, int64_t known, struct data_source **out,
              struct error *err)
{
    assert((job->data.text.count || job->data.tokens.count) &&
           "a job without data is refused when it is read");
    struct data_source *source = xcalloc(1, sizeof *source);
    source->seed = (uint64_t)job->train.seed;
    source->seq = (uint64_t)job->model.seq;
    int rc = open_corpus(source, job, known, err);
    if (rc == 0)
        rc = open_own(source, job, known, err);
    if (rc < 0) {
        data_close(source);
        return rc;
    }
    uint64_t most = (uint64_t)job->eval.samples;
    source->evaluated = most > 0 && most < source->holdout ? most : source->holdout;
    *out = source;
    return 0;
}

void data_close(struct data_source *source)
{
    if (!source)
        return;
    files_finish(&source->files);
    files_finish(&source->own);
    free(source);
}

uint64_t data_size(const struct data_source *source)
{
    return source->files.size;
}

/* Add one more file to the entry that stands for all that are left. */
static void fold(struct data_file *rest, const struct data_file *file)
{
    rest->hash = hash_text(rest->hash, file->path);
    rest->hash = hash_number(rest->hash, file->size);
    rest->hash = hash_number(rest->hash, file->hash);
    rest->size += file->size;
}

/* File number `index` of all, NULL beyond the last. */
static const struct file *file_at(const struct data_source *source, size_t index, const char **path)
{
    size_t own = index - source->files.count;
    return index < source->files.count ? files_at(&source->files, index, path)
                                       : files_at(&source->own, own, path);
}

size_t data_files(const struct data_source *source, struct data_file **out)
{
    struct data_file *files = xcalloc(DATA_FILES_MAX, sizeof *files);
    const struct file *file;
    const char *path;
    size_t index = 0, count = 0;
    for (; (file = file_at(source, index, &path)); index++) {
        struct data_file one = {xstrdup(path), file->size, file_hash(file)};
        if (index < DATA_FILES_MAX) {
            files[count++] = one;
            continue;
        }
        struct data_file *last = &files[DATA_FILES_MAX - 1];
        if (index == DATA_FILES_MAX) {
            struct data_file rest = {.hash = HASH_START};
            fold(&rest, last);
            free(last->path);
            *last = rest;
        }
        fold(last, &one);
        free(one.path);
    }
    if (index > DATA_FILES_MAX)
        files[DATA_FILES_MAX - 1].path = xasprintf("%zu more files", index - DATA_FILES_MAX + 1);
    *out = files;
    return count;
}

void data_files_free(struct data_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(files[i].path);
    free(files);
}

uint64_t data_samples(const struct data_source *source, enum data_split split)
{
    return split == DATA_TRAIN ? source->train : source->evaluated;
}

#define ORDER_ROUNDS 8

/* Half the number of bits of the smallest domain with an even number of bits that holds `count`
 * numbers. */
static unsigned half_bits(uint64_t count)
{
    unsigned half = 1;
    while (UINT64_C(1) << (2 * half) < count)
        half++;
    return half;
}

static uint64_t permute(uint64_t seed, uint64_t stream, unsigned half, uint64_t number)
{
    uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = number >> half, right = number & mask;
    for (uint64_t round = 0; round < ORDER_ROUNDS; round++) {
        uint64_t next = left ^ (random_bits(seed, stream, round << 32 | right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position)
{
    assert(position < count && count <= UINT64_C(1) << 62);
    if (count == 1)
        return 0;
    /* A stream of its own, distinct from those of weights and dropout. */
    uint64_t stream = hash_number(hash_text(HASH_START, "data order"), epoch);
    unsigned half = half_bits(count);
    do
        position = permute(seed, stream, half, position);
    while (position >= count);
    return position;
}

/* The held-out window that is sample `sample` of those that are evaluated: sample * holdout /
 * evaluated, without overflow. */
static uint64_t spread(const struct data_source *source, uint64_t sample)
{
    uint64_t whole = source->holdout / source->evaluated,
             rest = source->holdout % source->evaluated;
    return sample * whole + sample * rest / source->evaluated;
}

/* Index of a sample's first token. */
static uint64_t find_window(const struct data_source *source, enum data_split split,
                            uint64_t sample)
{
    if (split == DATA_HOLDOUT)
        return source->holdout_first + spread(source, sample) * source->seq;
    return source->seq *
           order_at(source->seed, sample / source->train, source->train, sample % source->train);
}

static void read_tokens(const struct files *files, uint64_t first, uint64_t count, int32_t *out)
{
    while (count) {
        struct elements elements = files_span(files, first);
        assert(elements.count);
        uint64_t part = elements.count < count ? elements.count : count;
        elements_widen(elements, part, out);
        first += part;
        count -= part;
        out += part;
    }
}

void data_fill(const struct data_source *source, enum data_split split, uint64_t first_sample,
               int64_t sample_low, int64_t sample_high, int64_t seq_low, int64_t seq_high,
               bool targets, int32_t *out)
{
    assert(0 <= sample_low && sample_low <= sample_high);
    assert(0 <= seq_low && seq_low <= seq_high && (uint64_t)seq_high <= source->seq);
    uint64_t width = (uint64_t)(seq_high - seq_low);
    bool own = split == DATA_HOLDOUT && source->own.count > 0;
    for (int64_t i = sample_low; i < sample_high; i++, out += width) {
        uint64_t sample = first_sample + (uint64_t)i;
        if (split == DATA_HOLDOUT && sample >= source->evaluated) {
            for (uint64_t j = 0; j < width; j++)
                out[j] = targets ? DATA_IGNORED : 0;
            continue;
        }
        uint64_t first = find_window(source, split, sample) + (uint64_t)seq_low + targets;
        read_tokens(own ? &source->own : &source->files, first, width, out);
    }
}

uint64_t data_targets(const struct data_source *source, enum data_split split,
                      uint64_t first_sample, uint64_t samples)
{
    if (split == DATA_HOLDOUT) {
        uint64_t left = first_sample < source->evaluated ? source->evaluated - first_sample : 0;
        samples = samples < left ? samples : left;
    }
    return samples * source->seq;
}
