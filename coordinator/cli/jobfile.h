/* jobfile.h - the job file of -f, read once and checked here before anybody else sees it. */
#ifndef COORDINATOR_CLI_JOBFILE_H
#define COORDINATOR_CLI_JOBFILE_H

#include "common/config/job.h"

/* Read a job file; the caller owns text and job. An enum exit_code: EXIT_INPUT with
 * file:line:column. "-" is standard input; path NULL, a missing flag, is EXIT_USAGE. */
int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err);
/* The same for content read elsewhere, of which it takes ownership; messages call it `name`. */
int jobfile_take(char *content, const char *name, char **text, struct job_config **job,
                 struct error *err);

#endif
