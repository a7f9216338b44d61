/* files.h - the JSON files of the Galvatron project: objects, and the numbers and words in them.
 * Every message names the file and the key. */
#ifndef COORDINATOR_PLANNER_GALVATRON_FILES_H
#define COORDINATOR_PLANNER_GALVATRON_FILES_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Read a file that holds one JSON object; the caller drops it. A negative errno when it cannot be
 * read; -EINVAL when it holds something else. */
int files_read(const char *path, json_t **out, struct error *err);

/* A number of at least 0, or above it. -EINVAL: `value` is NULL or another one. */
int files_number(const char *path, const char *key, const json_t *value, bool above, double *out,
                 struct error *err);
/* A whole number of `least` to 2^40; true and false are 1 and 0. */
int files_whole(const char *path, const char *key, const json_t *value, int64_t least, int64_t *out,
                struct error *err);
/* Which of the words it is; they end with NULL. */
int files_word(const char *path, const char *key, const json_t *value, const char *const *words,
               int *out, struct error *err);

#endif
