/* demojob.h - the job that `gimbal demo` trains: a small model of bytes, on text that is here. */
#ifndef COORDINATOR_CLI_DEMO_DEMOJOB_H
#define COORDINATOR_CLI_DEMO_DEMOJOB_H

#include "common/base/error.h"

#include <stdint.h>

#define DEMOJOB_TEXT "/usr/share/games/fortunes"

/* The job file's text, the caller's, for a file or a directory of text (NULL: DEMOJOB_TEXT), so
 * many steps, and so many devices or one less. -ENOENT says which package has the text. */
int demojob_write(const char *text_path, int64_t steps, int devices, char **out, struct error *err);

#endif
