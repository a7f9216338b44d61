/* completion.c - `gimbal completion SHELL`: made from the tables of commands, so that it cannot be
 * out of date. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"

#include <string.h>

static void completion_print_flags(const struct flag *flags, unsigned takes)
{
    for (; flags && flags->name; flags++)
        if ((common_flag_takes(flags) & ~takes) == 0)
            printf(" --%s", flags->name);
}

/* Complete the words after a command; if its name has two words, the pattern has both. */
static void completion_print_command(const struct command *command)
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
    completion_print_flags(common_flags, command->takes);
    puts("\" ;;");
}

static void completion_print_bash(void)
{
    puts("# eval \"$(gimbal completion bash)\"\n"
         "_gimbal() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words\n"
         "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in");
    for (size_t i = 0; commands[i]; i++) {
        for (size_t j = 0; commands[i]->below && commands[i]->below[j]; j++)
            completion_print_command(commands[i]->below[j]);
        completion_print_command(commands[i]);
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
}

/* zsh can run what is written for bash. */
static void completion_print_zsh(void)
{
    puts("# eval \"$(gimbal completion zsh)\"\n"
         "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"
         "autoload -Uz bashcompinit && bashcompinit");
    completion_print_bash();
}

/* Print text for within single quotes. */
static void completion_print_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++)
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('\'');
}

static void completion_print_fish_flag(const char *where, const struct flag *flag, bool letter)
{
    printf("complete -c gimbal -n '%s' -l %s", where, flag->name);
    if (flag->letter && letter)
        printf(" -s %c", flag->letter);
    fputs(flag->kind == FLAG_SWITCH ? " -d " : " -r -F -d ", stdout);
    completion_print_quoted(flag->help);
    putchar('\n');
}

static void completion_print_fish_flags(const char *where, const struct command *command)
{
    for (const struct flag *flag = command->flags; flag && flag->name; flag++)
        completion_print_fish_flag(where, flag, true);
    for (const struct flag *flag = common_flags; flag->name; flag++)
        if ((common_flag_takes(flag) & ~command->takes) == 0)
            completion_print_fish_flag(where, flag, !options_has_letter(command, flag->letter));
}

/* The second word of a command is completed after the first one, its flags after both. */
static void completion_print_fish_command(const struct command *command)
{
    char parent[96] = "__fish_use_subcommand", where[192];
    const char *second = strchr(command->name, ' ');
    if (second) {
        snprintf(parent, sizeof parent, "__fish_seen_subcommand_from %.*s",
                 (int)(second - command->name), command->name);
        snprintf(where, sizeof where, "%s; and __fish_seen_subcommand_from%s", parent, second);
    } else {
        snprintf(where, sizeof where, "__fish_seen_subcommand_from %s %s", command->name,
                 command->alias ? command->alias : "");
    }
    printf("complete -c gimbal -n '%s' -a '%s' -d ", parent, second ? second + 1 : command->name);
    completion_print_quoted(command->summary);
    putchar('\n');
    if (command->words)
        printf("complete -c gimbal -n '%s' -a '%s'\n", where, command->words);
    completion_print_fish_flags(where, command);
}

static void completion_print_fish(void)
{
    puts("# gimbal completion fish | source\n"
         "complete -c gimbal -f");
    for (size_t i = 0; commands[i]; i++) {
        completion_print_fish_command(commands[i]);
        for (size_t j = 0; commands[i]->below && commands[i]->below[j]; j++)
            completion_print_fish_command(commands[i]->below[j]);
    }
}

static const struct shell {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", completion_print_bash},
              {"fish", completion_print_fish},
              {"zsh", completion_print_zsh}};

static int completion_run(const struct invocation *invocation, struct error *err)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(invocation->arguments[0], shells[i].name) == 0) {
            shells[i].print();
            return EXIT_DONE;
        }
    return error_set(err, EXIT_USAGE, "no completion for '%s'; known: bash, fish, zsh",
                     invocation->arguments[0]);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print the completion script for a shell",
    .arguments = "bash|fish|zsh",
    .arguments_min = 1,
    .arguments_max = 1,
    .words = "bash fish zsh",
    .run = completion_run,
};
