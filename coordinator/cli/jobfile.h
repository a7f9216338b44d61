/* jobfile.h - the job file of a command, read once and checked here before anybody else sees it. */
#ifndef COORDINATOR_CLI_JOBFILE_H
#define COORDINATOR_CLI_JOBFILE_H

#include "common/config/job.h"
#include "coordinator/cli/options.h"

/* The job file that a command was given: by -f, which *file has or NULL, or as its argument. Both
 * are EXIT_USAGE. */
int jobfile_path(const struct invocation *invocation, const char **file, struct error *err);
/* Whether the text is a plan, which as a job file would only lack keys: EXIT_USAGE says what to
 * give instead; EXIT_DONE: it is none. */
int jobfile_refuse_plan(const char *text, const char *name, struct error *err);
/* Read a job file; the caller owns text and job. An enum exit_code: EXIT_INPUT with
 * file:line:column. "-" is standard input; path NULL, a missing flag, is EXIT_USAGE. */
int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err);
/* The same for content read elsewhere, of which it takes ownership; messages call it `name`. */
int jobfile_take(char *content, const char *name, char **text, struct job_config **job,
                 struct error *err);

#endif
