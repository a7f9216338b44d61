/* options.c - what all commands have in common, and what each of them takes of it. */
#include "coordinator/cli/options.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON(member, what) .kind = what, .offset = offsetof(struct common, member)

const struct flag common_flags[] = {
    {"output", 'o', COMMON(output_text, FLAG_TEXT), "FORMAT",
     "table, wide, name, json, jsonl, svg or csv; or FILE.FORMAT"},
    {"watch", 'w', COMMON(watch, FLAG_SWITCH), NULL, "keep running, and print again what changes"},
    {"no-headers", 0, COMMON(no_headers, FLAG_SWITCH), NULL, "omit the header line of tables"},
    {"quiet", 'q', COMMON(quiet, FLAG_SWITCH), NULL, "show no progress on stderr"},
    {"verbose", 'v', COMMON(verbose, FLAG_SWITCH), NULL, "be more detailed on stderr"},
    {"timeout", 0, COMMON(timeout_s, FLAG_TIME), "TIME", "give up after this time, such as 30s"},
    {"address", 0, COMMON(address, FLAG_TEXT), "ADDRESS",
     "the coordinator, tcp://HOST:PORT (GIMBAL_ADDRESS)"},
    {"tls", 0, COMMON(tls, FLAG_TEXT), "DIR", "certificates for tls+tcp://HOST:PORT (GIMBAL_TLS)"},
    {"dry-run", 0, COMMON(dry_run, FLAG_SWITCH), NULL, "check and plan, but change nothing"},
    {"help", 'h', COMMON(help, FLAG_SWITCH), NULL, "print this text"},
    {"version", 'V', COMMON(version, FLAG_SWITCH), NULL, "print the version"},
    {.name = NULL},
};

unsigned common_flag_takes(const struct flag *flag)
{
    switch (flag->offset) {
    case offsetof(struct common, output_text):
    case offsetof(struct common, no_headers):
        return TAKES_OUTPUT;
    case offsetof(struct common, watch):
        return TAKES_WATCH;
    case offsetof(struct common, address):
    case offsetof(struct common, tls):
        return TAKES_ADDRESS;
    case offsetof(struct common, dry_run):
        return TAKES_DRY_RUN;
    case offsetof(struct common, timeout_s):
        return TAKES_TIMEOUT;
    default:
        return 0;
    }
}

/* Either a word like "json", or a file whose name ends with one of the words, like "plan.json". */
static int find_output(struct common *common, struct error *err)
{
    const char *text = common->output_text, *ending = text ? strrchr(text, '.') : NULL;
    const struct flag flag = {.name = "output", .words = output_words};
    if (!text)
        return 0;
    if (!ending || strchr(ending, '/') || ending == text)
        return flags_read_word(&flag, text, &common->output, err);
    common->output_path = text;
    int rc = flags_read_word(&flag, ending + 1, &common->output, err);
    return rc < 0 ? error_prefix(err, rc, "file '%s'", text) : 0;
}

/* Of the command's flags and the common ones; command NULL: before the command's name. */
static int read_flags(const struct command *command, void *values, int argc, char **argv,
                      struct common *common, int *next, struct error *err)
{
    char help[64];
    struct flag_table tables[] = {{command ? command->flags : NULL, values},
                                  {common_flags, common}};
    snprintf(help, sizeof help, "'gimbal %s%s-h' lists them", command ? command->name : "",
             command ? " " : "");
    int rc = flags_read(tables, 2, help, !command, argc, argv, next, err);
    for (size_t i = 0; common_flags[i].name; i++)
        if (tables[1].given >> i & 1)
            common->given |= common_flag_takes(&common_flags[i]);
    return rc == 0 ? find_output(common, err) : rc;
}

unsigned output_takes(enum output output)
{
    return output == OUTPUT_SVG    ? TAKES_DRAWING
           : output == OUTPUT_NAME ? TAKES_NAMES
           : output == OUTPUT_CSV  ? TAKES_CSV
                                   : TAKES_OUTPUT;
}

/* Those of a command, as in "table, wide, json or jsonl". */
static const char *print_outputs(char *out, size_t size, unsigned takes)
{
    const char *words[OUTPUT_CSV + 1];
    size_t count = 0, used = 0;
    for (enum output output = 0; output_words[output]; output++)
        if (takes & output_takes(output))
            words[count++] = output_words[output];
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? " or "
                                                  : ", ",
                                 words[i]);
    return out;
}

static int check_output(const struct command *command, enum output output, struct error *err)
{
    char outputs[64];
    const char *lacks = output == OUTPUT_SVG   ? "drawing"
                        : output == OUTPUT_CSV ? "columns of numbers"
                                               : "list of names";
    if (output == OUTPUT_TABLE || output_takes(output) & (command->takes | TAKES_OUTPUT))
        return 0;
    return error_set(err, -EINVAL, "has no %s: --output is %s", lacks,
                     print_outputs(outputs, sizeof outputs, command->takes));
}

/* Refuse flags that would have no effect. */
static int check_taken(const struct command *command, const struct common *common,
                       struct error *err)
{
    for (const struct flag *flag = common_flags; flag->name; flag++)
        if (common_flag_takes(flag) & common->given & ~command->takes)
            return error_set(err, -EINVAL, "does not take --%s", flag->name);
    return check_output(command, (enum output)common->output, err);
}

static int check_count(const struct command *command, int count, char **arguments,
                       struct error *err)
{
    if (count < command->arguments_min)
        return error_set(err, -EINVAL, "needs %s", command->arguments);
    if (count > command->arguments_max)
        return error_set(err, -EINVAL, "'%s' is one argument too many",
                         arguments[command->arguments_max]);
    return 0;
}

int options_read_common(int argc, char **argv, struct common *common, int *next, struct error *err)
{
    return read_flags(NULL, NULL, argc, argv, common, next, err);
}

int options_read(const struct command *command, int argc, char **argv,
                 struct invocation *invocation, struct error *err)
{
    int next;
    invocation->values = xcalloc(1, command->values_size + 1);
    int rc = read_flags(command, invocation->values, argc, argv, &invocation->common, &next, err);
    if (rc < 0 || invocation->common.help || invocation->common.version)
        return rc;
    invocation->arguments = argv + next;
    invocation->argument_count = argc - next;
    rc = check_taken(command, &invocation->common, err);
    if (rc == 0)
        rc = check_count(command, invocation->argument_count, invocation->arguments, err);
    return rc;
}

void options_finish(struct invocation *invocation)
{
    free(invocation->values);
    invocation->values = NULL;
}

bool options_has_letter(const struct command *command, char letter)
{
    const struct flag *flag = command->flags;
    while (flag && flag->name && (!flag->letter || flag->letter != letter))
        flag++;
    return flag && flag->name;
}

/* Drawings and names are only mentioned for commands that have them, letters where they have this
 * meaning. command NULL: no command in particular. */
static void print_common(const struct flag *flag, const struct command *command, unsigned takes,
                         FILE *out)
{
    struct flag shown = *flag;
    char outputs[64], help[96];
    if (command && options_has_letter(command, flag->letter))
        shown.letter = 0;
    if (flag->offset == offsetof(struct common, output_text)) {
        snprintf(help, sizeof help, "%s; or FILE.FORMAT",
                 print_outputs(outputs, sizeof outputs, takes));
        shown.help = help;
    }
    flags_print(&shown, out);
}

static void print_all_common(const struct command *command, unsigned takes, FILE *out)
{
    for (const struct flag *flag = common_flags; flag->name; flag++)
        if ((common_flag_takes(flag) & ~takes) == 0)
            print_common(flag, command, takes, out);
}

void options_print_common(unsigned takes, FILE *out)
{
    print_all_common(NULL, takes, out);
}

void options_print_command(const struct command *command, FILE *out)
{
    fprintf(out, "usage: gimbal %s [FLAGS]%s%s\n\n%s.\n", command->name,
            *command->arguments ? " " : "", command->arguments, command->summary);
    if (command->alias)
        fprintf(out, "Also called %s.\n", command->alias);
    for (size_t i = 0; command->below && command->below[i]; i++)
        fprintf(out, "%s  %-18s %s\n", i ? "" : "\nMore:\n", command->below[i]->name,
                command->below[i]->summary);
    fputs("\nFlags:\n", out);
    for (const struct flag *flag = command->flags; flag && flag->name; flag++)
        flags_print(flag, out);
    print_all_common(command, command->takes, out);
}
