/* text.h - byte-level text: any file will do, and each of its bytes is a token, 0 .. 255.
 *
 * A path may be a directory. That stands for its regular files, in byte order of their names,
 * except those that contain a NUL byte, which no text does. Subdirectories are not entered. */
#ifndef WORKER_DATA_TEXT_H
#define WORKER_DATA_TEXT_H

#include "common/base/error.h"
#include "common/config/fields.h"
#include "worker/data/files.h"

#include <stdint.h>

/* Append the bytes of all files, in order, to an empty array. -errno with the path; -ERANGE: the
 * vocabulary has no room for every byte. The caller finishes files in either case. */
int text_open(struct files *files, const struct texts *paths, int64_t vocab, struct error *err);

#endif
