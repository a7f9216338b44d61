/* jobfile.h - the job file of -f: read once, checked here before anybody else sees it. */
#ifndef COORDINATOR_CLI_JOBFILE_H
#define COORDINATOR_CLI_JOBFILE_H

#include "common/config/job.h"

/* Both are the caller's. An enum exit_code: EXIT_INPUT with file:line:column. "-" is the
 * standard input; path NULL is EXIT_USAGE: the flag is missing. */
int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err);
/* The same of what was read elsewhere, which it takes; errors call it `name`. */
int jobfile_take(char *content, const char *name, char **text, struct job_config **job,
                 struct error *err);

#endif
