/* named.h - what arguments name: a job or a file, and members of a list. */
#ifndef COORDINATOR_CLI_NAMED_H
#define COORDINATOR_CLI_NAMED_H

#include "common/base/error.h"
#include "coordinator/cli/options.h"

#include <stddef.h>

/* Where an argument may be a job or something on the disk: is it like the name of a job, "j-1"? Is
 * it a path: with a '/', or there and no such name? */
bool named_job(const char *text);
bool named_path(const char *text);

#define NAMED_MAX 64 /* arguments */

/* Bring those of `all` structs to the front that the arguments name, each once and in that order;
 * *count is how many. name: where in a struct its char * is; kind: "job", for the words. An enum
 * exit_code; EXIT_INPUT: there is none of a name. */
int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err);

#endif
