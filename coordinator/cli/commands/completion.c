/* completion.c - `gimbal completion bash`: from the tables, so that it cannot be out of date. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include <string.h>

static void print_flags(const struct flag *flags, unsigned takes)
{
    for (; flags && flags->name; flags++)
        if ((common_flag_takes(flags) & ~takes) == 0)
            printf(" --%s", flags->name);
}

/* The words behind a command; of one of two words the pattern has both. */
static void print_command(const struct command *command)
{
    const char *second = strchr(command->name, ' ');
    int first = second ? (int)(second - command->name) : (int)strlen(command->name);
    const char *rest = second ? second + 1 : NULL;
    printf("        %.*s\\ %s", first, command->name, rest ? rest : "*");
    if (command->alias)
        printf("|%s\\ %s", command->alias, rest ? rest : "*");
    fputs(") words=\"", stdout);
    if (command->words)
        printf("%s ", command->words);
    for (size_t i = 0; command->below && command->below[i]; i++)
        printf("%s ", strchr(command->below[i]->name, ' ') + 1);
    for (const struct flag *flag = command->flags; flag && flag->name; flag++)
        printf("--%s ", flag->name);
    print_flags(common_flags, command->takes);
    puts("\" ;;");
}

static int run(const struct invocation *invocation, struct error *err)
{
    if (strcmp(invocation->arguments[0], "bash") != 0)
        return error_set(err, EXIT_USAGE, "no completion for '%s'; known: bash",
                         invocation->arguments[0]);
    puts("# eval \"$(gimbal completion bash)\"\n"
         "_gimbal() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words\n"
         "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in");
    for (size_t i = 0; commands[i]; i++) {
        for (size_t j = 0; commands[i]->below && commands[i]->below[j]; j++)
            print_command(commands[i]->below[j]);
        print_command(commands[i]);
    }
    fputs("        *) words=\"", stdout);
    for (size_t i = 0; commands[i]; i++)
        printf("%s%s", i ? " " : "", commands[i]->name);
    puts("\" ;;\n"
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    [[ $word == -* || $COMP_CWORD == 1 ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
         "}\n"
         "complete -F _gimbal gimbal");
    return EXIT_DONE;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print completion for a shell",
    .arguments = "bash",
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
