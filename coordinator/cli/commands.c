/* commands.c - the table of commands. */
#include "coordinator/cli/commands.h"

#include "common/config/nearest.h"

#include <string.h>

#define NAMES_MAX 64

/* One line each, so that changes stay small. */
/* clang-format off */
const struct command *const commands[] = {
    &command_cancel,
    &command_checkpoint,
    &command_cluster,
    &command_completion,
    &command_config,
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

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0 ||
            (commands[i]->alias && strcmp(commands[i]->alias, name) == 0))
            return commands[i];
    return NULL;
}

const char *command_nearest(const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; commands[i] && count + 2 <= NAMES_MAX; i++) {
        names[count++] = commands[i]->name;
        if (commands[i]->alias)
            names[count++] = commands[i]->alias;
    }
    return nearest_word(name, names, count);
}

static const char *second_word(const struct command *command)
{
    return strchr(command->name, ' ') + 1;
}

const struct command *command_find_below(const struct command *command, const char *word)
{
    for (size_t i = 0; command->below && command->below[i]; i++)
        if (strcmp(second_word(command->below[i]), word) == 0)
            return command->below[i];
    return NULL;
}

const char *command_nearest_below(const struct command *command, const char *word)
{
    const char *words[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; command->below && command->below[i] && count < NAMES_MAX; i++)
        words[count++] = second_word(command->below[i]);
    return nearest_word(word, words, count);
}

void commands_print(FILE *out)
{
    fputs("usage: gimbal COMMAND [FLAGS] [ARGUMENTS]\n\nCommands:\n", out);
    for (size_t i = 0; commands[i]; i++)
        fprintf(out, "  %-12s %s%s%s%s\n", commands[i]->name, commands[i]->summary,
                commands[i]->alias ? " (" : "", commands[i]->alias ? commands[i]->alias : "",
                commands[i]->alias ? ")" : "");
    fputs("\nFlags of most commands:\n", out);
    options_print_common(~0u, out);
    fputs("\n'gimbal COMMAND -h' describes a command.\n", out);
}
