/* format.h - the family of formats that files of tokens have.
 *
 * A row says which files are of its format, and where their tokens lie; what they are used for is
 * the same for all. tokens.c has the table. */
#ifndef WORKER_DATA_FORMAT_H
#define WORKER_DATA_FORMAT_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/elements.h"
#include "worker/data/files.h"

#include <stdbool.h>
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
extern const struct data_format data_format_uint16;
extern const struct data_format data_format_uint32;

#endif
