/* command.h - a command of `gimbal`: found by its words in a table, and run with its flags.
 *
 * A command of two words like `plan show` is a row in the table `below` of the first word's. */
#ifndef COORDINATOR_CLI_COMMAND_H
#define COORDINATOR_CLI_COMMAND_H

#include "coordinator/cli/options.h"

/* Find a command by name or alias in a table that ends with NULL; NULL if there is none. */
const struct command *command_find(const struct command *const *commands, const char *name);
/* The subcommand with this second word; NULL if there is none. */
const struct command *command_find_below(const struct command *command, const char *word);
/* The command that was probably meant; NULL if none is similar. */
const char *command_nearest(const struct command *const *commands, const char *name);
const char *command_nearest_below(const struct command *command, const char *word);
/* The help of `gimbal` itself. */
void command_print_all(const struct command *const *commands, FILE *out);

/* Do what the words of main() say, and report on stderr how it failed. --version is the command
 * "version" of the table. Returns the exit status. */
int command_main(const struct command *const *commands, int argc, char **argv);

#endif
