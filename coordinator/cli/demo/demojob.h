/* demojob.h - the job that `gimbal demo` trains: a small byte-level model on text of this
 * machine. */
#ifndef COORDINATOR_CLI_DEMO_DEMOJOB_H
#define COORDINATOR_CLI_DEMO_DEMOJOB_H

#include "common/base/error.h"

#include <stdint.h>

#define DEMOJOB_TEXT "/usr/share/games/fortunes"

/* The text of a job file, owned by the caller, for a file or directory of text (NULL:
 * DEMOJOB_TEXT), for this many steps, and for this many devices or one less. -ENOENT names the
 * package with the text. */
int demojob_write(const char *text_path, int64_t steps, int devices, char **out, struct error *err);

#endif
