/* options.h - what a command of `gimbal` says of itself, and its part of a command line: its flags,
 * by tables (common/base/flags.h), and its arguments.
 *
 * Flags common to all commands are in one table and read into struct common; each command has a
 * table and a struct of its own in addition. Reading, help texts and completion are derived from
 * both. */
#ifndef COORDINATOR_CLI_OPTIONS_H
#define COORDINATOR_CLI_OPTIONS_H

#include "common/base/error.h"
#include "common/base/flags.h"
#include "coordinator/cli/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Which common flags a command accepts; the others are refused with a message. */
enum takes {
    TAKES_OUTPUT = 1,  /* -o, --no-headers */
    TAKES_WATCH = 2,   /* -w */
    TAKES_ADDRESS = 4, /* --address, --tls: it calls a coordinator */
    TAKES_DRY_RUN = 8,
    TAKES_TIMEOUT = 16,
    TAKES_DRAWING = 32, /* -o svg */
    TAKES_NAMES = 64,   /* -o name */
    TAKES_CSV = 128,    /* -o csv */
};

struct common {
    int output;              /* enum output */
    const char *output_text; /* as written on the command line */
    const char *output_path; /* if it was the name of a file; NULL: stdout */
    bool watch, no_headers, quiet, verbose, dry_run, help, version;
    double timeout_s; /* 0: the command's default */
    const char *address, *tls;
    unsigned given; /* which of the flags in enum takes were given */
};

struct invocation;

struct command {
    const char *name;  /* a subcommand's includes its parent's, as in "plan show" */
    const char *alias; /* NULL: none */
    const char *summary;
    /* As the help has them: "JOB|JOB-FILE", "[NODE ...]"; "" if it takes none. Completion offers
     * small words as they are, and for others what they name. */
    const char *arguments;
    const struct command *const *below; /* subcommands sorted by name, ending with NULL; or NULL */
    int arguments_min, arguments_max;
    const struct flag *flags; /* its own flags; NULL: none */
    size_t values_size;       /* size of the struct they are read into */
    unsigned takes;
    /* Returns an enum exit_code. On failure err has a message, or is empty if the command has
     * informed the user itself. */
    int (*run)(const struct invocation *invocation, struct error *err);
};

struct invocation {
    struct common common;
    void *values; /* struct of the command's own flags */
    char **arguments;
    int argument_count;
};

extern const struct flag common_flags[];
/* What a command must accept (enum takes) for this common flag to be allowed; 0: always allowed. */
unsigned common_flag_takes(const struct flag *flag);

/* What a command must accept for this output to be allowed. */
unsigned output_takes(enum output output);

/* Whether the command has a flag of its own with this letter. It then means that one, even if a
 * common flag has the same letter: the -o of a command that writes a file is the file, and its
 * format is --output. */
bool options_has_letter(const struct command *command, char letter);

/* Read flags in front of the command's name; *next is the index of the name, or argc. -EINVAL. */
int options_read_common(int argc, char **argv, struct common *common, int *next, struct error *err);
/* Read a command's flags and arguments; argv[0] is its name. Adds to invocation->common and fills
 * in the rest: values are freed by options_finish(), arguments are lent by argv. -EINVAL names the
 * flag and the nearest known one. */
int options_read(const struct command *command, int argc, char **argv,
                 struct invocation *invocation, struct error *err);
void options_finish(struct invocation *invocation);

/* Print the help of a command, and of the common flags that commands with these `takes` share. */
void options_print_command(const struct command *command, FILE *out);
void options_print_common(unsigned takes, FILE *out);

#endif
