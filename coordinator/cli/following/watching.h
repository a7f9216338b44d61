/* watching.h - print once, or with -w again and again. */
#ifndef COORDINATOR_CLI_FOLLOWING_WATCHING_H
#define COORDINATOR_CLI_FOLLOWING_WATCHING_H

#include "coordinator/cli/client.h"

#include <stdio.h>

/* Ask, and print the answer to out. */
typedef int (*watching_print_cb)(const struct invocation *invocation, struct client *client,
                                 FILE *out, struct error *err);

/* Connect and print; with -w ask again every second and print what has changed, until a signal or
 * the end of --timeout. An enum exit_code. */
int watching_run(const struct invocation *invocation, watching_print_cb print, struct error *err);

#endif
