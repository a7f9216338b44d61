/* tokens.h - files of token ids, in whatever format: data.tokens. */
#ifndef WORKER_DATA_TOKENS_H
#define WORKER_DATA_TOKENS_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/format.h"

#include <stdint.h>

/* Map what a path names, and check all but the tokens' values; the caller finishes *out. `told`
 * is the job's data.format, and *format the one that it turned out to be. -EINVAL: of no format
 * that files tell, or of one that contradicts what is told; otherwise as its row says. */
int token_file_open(const char *path, enum job_format told, struct token_file *out,
                    const struct data_format **format, struct error *err);
/* Accepts a zeroed one. */
void token_file_finish(struct token_file *file);

/* -ERANGE with the first token that is not below limit, which is that of `what`. */
int token_file_check(const struct token_file *file, int64_t limit, const char *what,
                     struct error *err);

/* Append the tokens of all files, in order, to an empty array. -ERANGE if a token is not below
 * vocab; otherwise as of token_file_open(). The caller finishes files in either case. */
int tokens_open(struct files *files, const struct texts *paths, enum job_format told, int64_t vocab,
                struct error *err);

#endif
