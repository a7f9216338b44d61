/* lines.h - JSON lines about one job after the other, in a file that is appended to. */
#ifndef WORKER_SCALARS_LINES_H
#define WORKER_SCALARS_LINES_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct jsonl;

/* Open or create the file. Lines at its end that are of this job, by its name and its id, and of
 * later steps than `step` are cut off, and so is a line that was not finished. *evaluated: the
 * step's evaluation is there. A negative errno. */
int jsonl_open(const char *path, const char *name, const char *job, uint64_t step, bool *evaluated,
               struct jsonl **out, struct error *err);
/* Append an object, which is taken. */
void jsonl_put(struct jsonl *lines, json_t *object);
/* As events_flush(). */
int jsonl_flush(struct jsonl *lines, struct error *err);
/* Accepts NULL. */
void jsonl_close(struct jsonl *lines);

#endif
