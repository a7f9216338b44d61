/* format.h - the family of data formats: a row says how files become token ids.
 *
 * data.c has the table, and does everything else: windows, split, order, targets. */
#ifndef WORKER_DATA_FORMAT_H
#define WORKER_DATA_FORMAT_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/files.h"

#include <stddef.h>
#include <stdint.h>

struct data_format {
    /* Key in the job's data section, and offset of its list of paths in struct job_data. The format
     * is used if that list is not empty. */
    const char *key;
    size_t paths;

    /* Map the files into zeroed `files`, one element per token. Called once; may block on the disk.
     * -errno with the path; -ERANGE if a token is not below vocab. The caller finishes files in
     * either case. */
    int (*open)(struct files *files, const struct texts *paths, int64_t vocab, struct error *err);

    /* Convert count elements to token ids. elements may be unaligned. Never blocks or fails. */
    void (*widen)(const struct files *files, const void *elements, uint64_t count, int32_t *out);
};

extern const struct data_format data_format_text;
extern const struct data_format data_format_tokens;

#endif
