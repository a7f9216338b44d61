/* command.c - finds the command, reads its flags, runs it, and reports how it ended. */
#include "coordinator/cli/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#define NAMES_MAX 64

const struct command *command_find(const struct command *const *commands, const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0 ||
            (commands[i]->alias && strcmp(commands[i]->alias, name) == 0))
            return commands[i];
    return NULL;
}

const char *command_nearest(const struct command *const *commands, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; commands[i] && count + 2 <= NAMES_MAX; i++) {
        names[count++] = commands[i]->name;
        if (commands[i]->alias)
            names[count++] = commands[i]->alias;
    }
    return text_nearest(name, names, count);
}

static const char *command_second_word(const struct command *command)
{
    return strchr(command->name, ' ') + 1;
}

const struct command *command_find_below(const struct command *command, const char *word)
{
    for (size_t i = 0; command->below && command->below[i]; i++)
        if (strcmp(command_second_word(command->below[i]), word) == 0)
            return command->below[i];
    return NULL;
}

const char *command_nearest_below(const struct command *command, const char *word)
{
    const char *words[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; command->below && command->below[i] && count < NAMES_MAX; i++)
        words[count++] = command_second_word(command->below[i]);
    return text_nearest(word, words, count);
}

void command_print_all(const struct command *const *commands, FILE *out)
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

static int command_fail_usage(const char *text)
{
    fprintf(stderr, "gimbal: %s\n", text);
    return EXIT_USAGE;
}

static int command_take_first(const struct command *const *commands, const char *name,
                              const struct command **out)
{
    struct error err;
    *out = command_find(commands, name);
    if (*out)
        return EXIT_DONE;
    const char *nearest = command_nearest(commands, name);
    if (nearest)
        error_set(&err, 0, "unknown command '%s'; did you mean '%s'?", name, nearest);
    else
        error_set(&err, 0, "unknown command '%s'; 'gimbal -h' lists them", name);
    return command_fail_usage(err.text);
}

/* Go on to the subcommand that the second word names. For a command that takes arguments, a word
 * that names no subcommand is an argument, unless no such file exists and it resembles a
 * subcommand. */
static int command_take_second(const struct command **command, int argc, char **argv, int *next)
{
    struct error err;
    const char *word = *next + 1 < argc ? argv[*next + 1] : "-";
    const struct command *below = command_find_below(*command, word);
    if (below) {
        *command = below;
        ++*next;
        return EXIT_DONE;
    }
    if (!(*command)->below || word[0] == '-')
        return EXIT_DONE;
    const char *nearest = command_nearest_below(*command, word);
    const char *name = (*command)->name;
    if ((*command)->arguments_max > 0 && (!nearest || access(word, F_OK) == 0))
        return EXIT_DONE;
    if (nearest)
        error_set(&err, 0, "unknown command '%s %s'; did you mean '%s %s'?", name, word, name,
                  nearest);
    else
        error_set(&err, 0, "unknown command '%s %s'; 'gimbal %s -h' lists them", name, word, name);
    return command_fail_usage(err.text);
}

/* Run the command with stdout redirected to the file of -o, if that names one. */
static int command_run_into_file(const struct command *command, const struct invocation *invocation,
                                 struct error *err)
{
    struct outfile outfile;
    int rc = outfile_begin(invocation->common.output_path, &outfile, err);
    if (rc < 0)
        return exit_of_errno(rc);
    int code = command->run(invocation, err);
    rc = outfile_end(&outfile, code == EXIT_DONE, err);
    return rc < 0 ? exit_of_errno(rc) : code;
}

/* A command that is nothing but its subcommands, as its `arguments` list them: "list|show ...". */
static int command_needs_second(const struct command *command, struct error *err)
{
    const char *words = command->arguments;
    size_t length = strcspn(words, " ");
    char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);
    for (size_t i = 0; i < length;) {
        size_t word = strcspn(words + i, "| "), next = i + word + 1;
        const char *before = i == 0 ? "" : next < length ? ", " : " or ";
        fprintf(out, "%s%.*s", before, (int)word, words + i);
        i = next;
    }
    fclose(out);
    error_set(err, 0, "needs a subcommand: %s", list);
    free(list);
    return EXIT_USAGE;
}

static int command_run(const struct command *command, const struct command *version, int argc,
                       char **argv, struct common common)
{
    struct invocation invocation = {.common = common};
    struct error err = {""};
    int code = EXIT_USAGE;
    if (options_read(command, argc, argv, &invocation, &err) < 0)
        ;
    else if (invocation.common.version) {
        const struct invocation plain = {.common = invocation.common}; /* it has no flags */
        code = version->run(&plain, &err);
    } else if (invocation.common.help) {
        options_print_command(command, stdout);
        code = EXIT_DONE;
    } else if (command->run) {
        code = command_run_into_file(command, &invocation, &err);
    } else {
        code = command_needs_second(command, &err);
    }
    if (err.text[0])
        fprintf(stderr, "gimbal %s: %s\n", command->name, err.text);
    options_finish(&invocation);
    return code;
}

int command_main(const struct command *const *commands, int argc, char **argv)
{
    struct common common = {0};
    struct error err = {""};
    const struct command *command, *version = command_find(commands, "version");
    int next;
    if (options_read_common(argc, argv, &common, &next, &err) < 0)
        return command_fail_usage(err.text);
    if (common.version)
        return command_run(version, version, 1, (char *[]){"version", NULL}, common);
    if (next == argc) {
        command_print_all(commands, common.help ? stdout : stderr);
        return common.help ? EXIT_DONE : EXIT_USAGE;
    }
    if (strcmp(argv[next], "help") == 0) {
        common.help = true;
        next++;
    }
    if (next == argc) {
        command_print_all(commands, stdout);
        return EXIT_DONE;
    }
    int code = command_take_first(commands, argv[next], &command);
    if (code == EXIT_DONE)
        code = command_take_second(&command, argc, argv, &next);
    return code == EXIT_DONE ? command_run(command, version, argc - next, argv + next, common)
                             : code;
}
