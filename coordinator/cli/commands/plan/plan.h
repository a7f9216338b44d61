/* plan.h - `gimbal plan` and its verbs: one file and one row in plan.c for each. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_PLAN_H
#define COORDINATOR_CLI_COMMANDS_PLAN_PLAN_H

#include "coordinator/cli/options.h"

extern const struct command command_plan_diff, command_plan_explain, command_plan_what_if,
    command_plan_why_not;

#endif
