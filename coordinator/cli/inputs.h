/* inputs.h - what the command line names: files, which are told apart because they are mistaken for
 * each other; the job file, read once and checked here before anybody else sees it; jobs, and
 * members of lists. */
#ifndef COORDINATOR_CLI_INPUTS_H
#define COORDINATOR_CLI_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/job.h"
#include "coordinator/cli/options.h"

enum file_kind { FILE_OTHER, FILE_JOB, FILE_CLUSTER, FILE_PLAN };

/* What the text seems to be, whether or not it is right in all its parts. */
enum file_kind filekind_of(const char *text);
/* For a text that cannot be read as what was wanted: if it is of another kind, say so, and where
 * that is given; otherwise false, and err stays as it is. */
bool filekind_explain(const char *text, const char *name, enum file_kind wanted, struct error *err);

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

/* For arguments that may be a job or something on disk: whether it looks like the name of a job
 * ("j-1"); whether it is a path, that is, contains '/' or exists and is no such name. */
bool named_job(const char *text);
bool named_path(const char *text);

#define NAMED_MAX 64 /* number of arguments */

/* The first argument that names none of the structs; NULL: each names one. name as below. */
const char *named_missing(const struct invocation *invocation, void **items, size_t all,
                          size_t name);
/* Move the structs among `all` that the arguments name to the front, each once and in the order of
 * the arguments; *count is their number. name: offset of the char * with a struct's name; kind:
 * "job" or the like, for messages. An enum exit_code; EXIT_INPUT: a name is not among them. */
int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err);

#endif
