/* outfile.h - what a command prints, as a file: there when the command has ended, or not at all. */
#ifndef COORDINATOR_CLI_OUTFILE_H
#define COORDINATOR_CLI_OUTFILE_H

#include "common/base/error.h"

#include <stdbool.h>

struct outfile {
    const char *path; /* lent; NULL: what is printed goes where it went */
    char *part;       /* the file until it is whole */
};

/* From here on stdout is the file. -errno with its path. */
int outfile_begin(const char *path, struct outfile *outfile, struct error *err);
/* Put it in its place, where the command has done all or has printed something: what a job that
 * waits or has failed was answered is an answer too. Else leave what was there. -errno with its
 * path. */
int outfile_end(struct outfile *outfile, bool done, struct error *err);

#endif
