/* tokens.h - files of token ids, data.tokens, and the family of formats that they have.
 *
 * A row says which files are of its format, and where their tokens lie; what they are used for is
 * the same for all. tokens.c has the table, and the rows of bare numbers. */
#ifndef WORKER_DATA_TOKENS_H
#define WORKER_DATA_TOKENS_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCUMENTS_UNKNOWN UINT64_MAX

/* A file of tokens, mapped. A zeroed one has none. */
struct token_file {
    char *path; /* of the file that has the tokens */
    struct file file;
    struct elements elements; /* its tokens */
    uint64_t documents;       /* that the file says it has, or DOCUMENTS_UNKNOWN */
    char *index_path;         /* (optional) of a second file, which belongs to it; NULL */
    struct file index;
};

struct data_format {
    const char *name; /* for people; that of a format to be told is its word in data.format */
    /* JOB_FORMAT_AUTO: files tell. Otherwise they are of this format if the job says so. */
    enum job_format told;

    /* Whether the path, as it was written, names files of this format, in whatever state. Reads
     * the head of a file at most. NULL: none tells. */
    bool (*recognise)(const char *path);

    /* Map the files that the path names into a zeroed *out, and check all but the tokens'
     * values. May block on the disk. -errno or -EINVAL with the file's name, and what is wrong
     * with it; the caller finishes *out in either case. */
    int (*open)(const char *path, struct token_file *out, struct error *err);
};

extern const struct data_format data_format_llm_c;
extern const struct data_format data_format_megatron;

/* Map what a path names, and check all but the tokens' values; the caller finishes *out. `told`
 * is the job's data.format, and *format the one that it turned out to be. -EINVAL: of no format
 * that files tell, or of one that contradicts what is told, or of another tool's, which is named;
 * otherwise as its row says. */
int token_file_open(const char *path, enum job_format told, struct token_file *out,
                    const struct data_format **format, struct error *err);
/* Accepts a zeroed one. */
void token_file_finish(struct token_file *file);

/* What tokens have to be below, and what that is the size of. */
struct token_limit {
    int64_t size;
    const char *what;
};

/* -ERANGE with the first token that is not below the limit. */
int token_file_check(const struct token_file *file, struct token_limit limit, struct error *err);

/* Append the tokens of all files, in order, to an empty array. -ERANGE if a token is not below
 * the limit; otherwise as of token_file_open(). The caller finishes files in either case. */
int tokens_open(struct files *files, const struct texts *paths, enum job_format told,
                struct token_limit limit, struct error *err);

/* Files in the format of llm.c (dev/data/data_common.py there) are what 'gimbal data pack' writes,
 * too. The header has 256 little-endian int32: magic, version, number of tokens, zeros. The tokens
 * follow, little-endian, with 16 bits each (GPT-2's vocabulary) or 32 (Llama 3's), as the magic
 * says. */
#define LLM_C_HEADER_SIZE 1024
/* The most tokens that a header can count. */
#define LLM_C_TOKENS_MAX ((uint64_t)INT32_MAX)

/* The header of a file of `count` tokens of 2 or 4 bytes each. */
void llm_c_header(uint64_t count, size_t width, unsigned char out[LLM_C_HEADER_SIZE]);

#endif
