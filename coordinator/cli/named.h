/* named.h - interprets arguments: jobs, files, and members of a list. */
#ifndef COORDINATOR_CLI_NAMED_H
#define COORDINATOR_CLI_NAMED_H

#include "common/base/error.h"
#include "coordinator/cli/options.h"

#include <stddef.h>

/* For arguments that may be a job or something on disk: whether it looks like the name of a job
 * ("j-1"); whether it is a path, that is, contains '/' or exists and is no such name. */
bool named_job(const char *text);
bool named_path(const char *text);

#define NAMED_MAX 64 /* number of arguments */

/* Move the structs among `all` that the arguments name to the front, each once and in the order of
 * the arguments; *count is their number. name: offset of the char * with a struct's name; kind:
 * "job" or the like, for messages. An enum exit_code; EXIT_INPUT: a name is not among them. */
int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err);

#endif
