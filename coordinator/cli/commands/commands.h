/* commands.h - all commands of `gimbal`: rows of commands.c, or of the table of their first word,
 * in the file of what they are about. */
#ifndef COORDINATOR_CLI_COMMANDS_COMMANDS_H
#define COORDINATOR_CLI_COMMANDS_COMMANDS_H

#include "coordinator/cli/command.h"

extern const struct command *const commands[]; /* sorted by name; ends with NULL */

extern const struct command command_cancel;
extern const struct command command_checkpoint;
extern const struct command command_checkpoint_export;
extern const struct command command_checkpoint_list;
extern const struct command command_checkpoint_verify;
extern const struct command command_cluster;
extern const struct command command_cluster_backup;
extern const struct command command_cluster_init;
extern const struct command command_cluster_join;
extern const struct command command_cluster_list;
extern const struct command command_cluster_restore;
extern const struct command command_cluster_revoke;
extern const struct command command_cluster_token;
extern const struct command command_completion;
extern const struct command command_config;
extern const struct command command_config_show;
extern const struct command command_curve;
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
