/* outfile.h - writes a command's output to a file, which appears complete or not at all. */
#ifndef COORDINATOR_CLI_OUTFILE_H
#define COORDINATOR_CLI_OUTFILE_H

#include "common/base/error.h"

#include <stdbool.h>

struct outfile {
    const char *path; /* lent; NULL: stdout is not redirected */
    char *part;       /* temporary file until the output is complete */
};

/* Redirect stdout to the file. A negative errno; the message names the path. */
int outfile_begin(const char *path, struct outfile *outfile, struct error *err);
/* Move the file into place if the command has succeeded or has printed something, since the answer
 * about a job that waits or has failed is an answer too; otherwise leave the previous file. A
 * negative errno; the message names the path. */
int outfile_end(struct outfile *outfile, bool done, struct error *err);

#endif
