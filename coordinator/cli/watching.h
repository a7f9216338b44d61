/* watching.h - print once, or with -w again and again. */
#ifndef COORDINATOR_CLI_WATCHING_H
#define COORDINATOR_CLI_WATCHING_H

#include "coordinator/cli/client.h"

typedef int (*watching_print_cb)(const struct invocation *invocation, struct client *client,
                                 struct error *err);

/* Connect and print; with -w print again every second, as steps go on, until a signal. An enum
 * exit_code. */
int watching_run(const struct invocation *invocation, watching_print_cb print, struct error *err);

#endif
