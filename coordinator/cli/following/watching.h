/* watching.h - prints once or, with -w, repeatedly. */
#ifndef COORDINATOR_CLI_FOLLOWING_WATCHING_H
#define COORDINATOR_CLI_FOLLOWING_WATCHING_H

#include "coordinator/cli/client.h"

#include <stdio.h>

/* Ask the coordinator, and print the answer to `out`. */
typedef int (*watching_print_cb)(const struct invocation *invocation, struct client *client,
                                 FILE *out, struct error *err);

/* Connect and print. With -w, ask every second and print again if something has changed, until a
 * signal or the end of --timeout. An enum exit_code. */
int watching_run(const struct invocation *invocation, watching_print_cb print, struct error *err);

#endif
