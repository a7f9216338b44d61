/* commands.c - the table of commands. */
#include "coordinator/cli/commands/commands.h"

#include <stddef.h>

/* One line each, so that changes stay small. */
/* clang-format off */
const struct command *const commands[] = {
    &command_cancel,
    &command_checkpoint,
    &command_cluster,
    &command_completion,
    &command_config,
    &command_curve,
    &command_data,
    &command_demo,
    &command_doctor,
    &command_drain,
    &command_drill,
    &command_events,
    &command_explain,
    &command_generate,
    &command_jobs,
    &command_logs,
    &command_nodes,
    &command_pause,
    &command_plan,
    &command_profile,
    &command_replan,
    &command_resume,
    &command_submit,
    &command_support,
    &command_times,
    &command_trace,
    &command_train,
    &command_undrain,
    &command_version,
    NULL,
};
/* clang-format on */
