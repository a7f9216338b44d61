/* format.h - the family of data formats: one row says how files become token ids.
 *
 * data.c lists the members and owns everything else: windows, split, order, targets. */
#ifndef WORKER_DATA_FORMAT_H
#define WORKER_DATA_FORMAT_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/files.h"

#include <stddef.h>
#include <stdint.h>

struct data_format {
    /* The key in the job's data section, and where its list of paths lies in struct job_data. The
     * format is used when the list is not empty. */
    const char *key;
    size_t paths;

    /* Map the files into the zeroed files, one element per token. Called once, may block on the
     * disk. On failure, -errno with the path; the caller finishes files in either case. Every
     * token must be below vocab: -ERANGE otherwise. */
    int (*open)(struct files *files, const struct texts *paths, int64_t vocab, struct error *err);

    /* Widen count elements to token ids. elements need not be aligned; never blocks or fails. */
    void (*widen)(const struct files *files, const void *elements, uint64_t count, int32_t *out);
};

extern const struct data_format data_format_text;
extern const struct data_format data_format_tokens;

#endif
