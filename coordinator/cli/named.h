/* named.h - what a list's arguments name of it. */
#ifndef COORDINATOR_CLI_NAMED_H
#define COORDINATOR_CLI_NAMED_H

#include "common/base/error.h"
#include "coordinator/cli/options.h"

#include <stddef.h>

#define NAMED_MAX 64 /* arguments */

/* Bring those of `all` structs to the front that the arguments name, each once and in that order;
 * *count is how many. name: where in a struct its char * is; kind: "job", for the words. An enum
 * exit_code; EXIT_INPUT: there is none of a name. */
int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err);

#endif
