/* commands.h - all commands of `gimbal`: one file each in commands/, one row each in commands.c.
 *
 * A command of two words like `plan show` is a file in the directory of the first word,
 * commands/plan/, and a row in that command's own table. */
#ifndef COORDINATOR_CLI_COMMANDS_H
#define COORDINATOR_CLI_COMMANDS_H

#include "coordinator/cli/options.h"

extern const struct command *const commands[]; /* sorted by name; ends with NULL */

/* Find a command by name or alias; NULL if there is none. */
const struct command *command_find(const char *name);
/* The subcommand with this name; NULL if there is none. */
const struct command *command_find_below(const struct command *command, const char *word);
/* The command that was probably meant; NULL if none is similar. */
const char *command_nearest(const char *name);
const char *command_nearest_below(const struct command *command, const char *word);
void commands_print(FILE *out);

extern const struct command command_cancel;
extern const struct command command_checkpoint;
extern const struct command command_checkpoint_export;
extern const struct command command_checkpoint_list;
extern const struct command command_checkpoint_verify;
extern const struct command command_cluster;
extern const struct command command_completion;
extern const struct command command_config;
extern const struct command command_config_show;
extern const struct command command_data;
extern const struct command command_data_pack;
extern const struct command command_data_show;
extern const struct command command_demo;
extern const struct command command_doctor;
extern const struct command command_drain;
extern const struct command command_drill;
extern const struct command command_events;
extern const struct command command_explain;
extern const struct command command_generate;
extern const struct command command_jobs;
extern const struct command command_logs;
extern const struct command command_nodes;
extern const struct command command_pause;
extern const struct command command_plan;
extern const struct command command_plan_diff;
extern const struct command command_plan_explain;
extern const struct command command_plan_frontier;
extern const struct command command_plan_show;
extern const struct command command_plan_trace;
extern const struct command command_plan_what_if;
extern const struct command command_plan_why_not;
extern const struct command command_profile;
extern const struct command command_profile_run;
extern const struct command command_profile_show;
extern const struct command command_replan;
extern const struct command command_resume;
extern const struct command command_submit;
extern const struct command command_support;
extern const struct command command_times;
extern const struct command command_trace;
extern const struct command command_train;
extern const struct command command_undrain;
extern const struct command command_version;

#endif
