/* main.c - the command `gimbal`: finds the command, parses its flags, runs it, and reports how it
 * ended. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail_usage(const char *text)
{
    fprintf(stderr, "gimbal: %s\n", text);
    return EXIT_USAGE;
}

static int find_command(const char *name, const struct command **out)
{
    struct error err;
    *out = command_find(name);
    if (*out)
        return EXIT_DONE;
    const char *nearest = command_nearest(name);
    if (nearest)
        error_set(&err, 0, "unknown command '%s'; did you mean '%s'?", name, nearest);
    else
        error_set(&err, 0, "unknown command '%s'; 'gimbal -h' lists them", name);
    return fail_usage(err.text);
}

/* Go on to the subcommand that the second word names. For a command that takes arguments, a word
 * that names no subcommand is an argument, unless no such file exists and it resembles a
 * subcommand. */
static int find_below(const struct command **command, int argc, char **argv, int *next)
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
    return fail_usage(err.text);
}

/* Run the command with stdout redirected to the file of -o, if that names one. */
static int run_into_file(const struct command *command, const struct invocation *invocation,
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

static int run_command(const struct command *command, int argc, char **argv, struct common common)
{
    struct invocation invocation = {.common = common};
    struct error err = {""};
    int code = EXIT_USAGE;
    if (options_read(command, argc, argv, &invocation, &err) < 0)
        ;
    else if (invocation.common.version) {
        const struct invocation version = {.common = invocation.common}; /* it has no flags */
        code = command_version.run(&version, &err);
    } else if (invocation.common.help) {
        options_print_command(command, stdout);
        code = EXIT_DONE;
    } else {
        code = run_into_file(command, &invocation, &err);
    }
    if (err.text[0])
        fprintf(stderr, "gimbal %s: %s\n", command->name, err.text);
    options_finish(&invocation);
    return code;
}

static int run(int argc, char **argv)
{
    struct common common = {0};
    struct error err = {""};
    const struct command *command;
    int next;
    if (options_read_common(argc, argv, &common, &next, &err) < 0)
        return fail_usage(err.text);
    if (common.version)
        return run_command(&command_version, 1, (char *[]){"version", NULL}, common);
    if (next == argc) {
        commands_print(common.help ? stdout : stderr);
        return common.help ? EXIT_DONE : EXIT_USAGE;
    }
    if (strcmp(argv[next], "help") == 0) {
        common.help = true;
        next++;
    }
    if (next == argc) {
        commands_print(stdout);
        return EXIT_DONE;
    }
    int code = find_command(argv[next], &command);
    if (code == EXIT_DONE)
        code = find_below(&command, argc, argv, &next);
    return code == EXIT_DONE ? run_command(command, argc - next, argv + next, common) : code;
}

int main(int argc, char **argv)
{
    child_shim(argc, argv);
    int code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gimbal: what was printed could not be written to stdout\n");
        return code == EXIT_DONE ? EXIT_IO : code;
    }
    return code;
}
