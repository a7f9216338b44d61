/* saving.h - where a training on this machine saves, before anything is started. */
#ifndef COORDINATOR_CLI_LOCAL_SAVING_H
#define COORDINATOR_CLI_LOCAL_SAVING_H

#include "common/base/error.h"

#include <stdbool.h>

/* Make the folder of the job's checkpoints in `dir`, and check that files can be made there. With
 * `resume` one that is missing is not made: dir may be misspelt, and the executor says so. A
 * negative errno. */
int saving_prepare(const char *dir, const char *job, bool resume, struct error *err);

#endif
