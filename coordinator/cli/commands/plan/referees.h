/* referees.h - `gimbal plan --cost galvatron`: plans of our searches next to the best of
 * Galvatron's space, each judged by that project's formula, by a simulation, and by our own
 * programs. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_REFEREES_H
#define COORDINATOR_CLI_COMMANDS_PLAN_REFEREES_H

#include "coordinator/cli/search.h"

/* hardware_dir NULL: the files about the machines are in profile_dir too. An enum exit_code. */
int referees_run(const struct common *common, const struct ask_values *ask, const char *profile_dir,
                 const char *hardware_dir, struct error *err);

#endif
