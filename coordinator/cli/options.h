/* options.h - the command line as tables: one row per flag says where its value goes.
 *
 * From the rows come reading, help texts, completion, and every sentence about a wrong flag.
 * Flags that all commands share are one table, read into struct common; a command has a table
 * and a struct of its own beside it. Flags and arguments come in any order; "--" ends flags. */
#ifndef COORDINATOR_CLI_OPTIONS_H
#define COORDINATOR_CLI_OPTIONS_H

#include "common/base/error.h"
#include "coordinator/cli/flag.h"
#include "coordinator/cli/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a command makes of the common flags; the others it refuses, in words. */
enum takes {
    TAKES_OUTPUT = 1,  /* -o, --no-headers */
    TAKES_WATCH = 2,   /* -w */
    TAKES_ADDRESS = 4, /* --address, --tls: it calls a coordinator */
    TAKES_DRY_RUN = 8,
    TAKES_TIMEOUT = 16,
    TAKES_DRAWING = 32, /* -o svg */
    TAKES_NAMES = 64,   /* -o name */
};

struct common {
    int output;              /* enum output */
    const char *output_text; /* what was written for it */
    const char *output_path; /* where it was the name of a file; NULL: stdout */
    bool watch, no_headers, quiet, verbose, dry_run, help, version;
    double timeout_s; /* 0: the command's own */
    const char *address, *tls;
    unsigned given; /* which of what a command may take, enum takes */
};

struct invocation;

struct command {
    const char *name;  /* of one below another, with that one's: "plan show" */
    const char *alias; /* or NULL */
    const char *summary;
    const char *arguments; /* "JOB", for the help; "" where it takes none */
    const char *words;     /* that its first argument is one of, with blanks between; NULL: none */
    const struct command *const *below; /* commands of a second word, by name, then NULL; or NULL */
    int arguments_min, arguments_max;
    const struct flag *flags; /* its own; NULL: none */
    size_t values_size;       /* of the struct they are read into */
    unsigned takes;
    /* An enum exit_code; err has the sentence of a failure, or stays empty where the command
     * has told the person itself. */
    int (*run)(const struct invocation *invocation, struct error *err);
};

struct invocation {
    const struct command *command;
    struct common common;
    void *values; /* as the command's flags describe */
    char **arguments;
    int argument_count;
};

extern const struct flag common_flags[];
/* Of a common flag, what a command must take to accept it; 0: any command does. */
unsigned common_flag_takes(const struct flag *flag);

/* Flags in front of the command's name; *next is the index of that, or argc. -EINVAL. */
int options_read_common(int argc, char **argv, struct common *common, int *next, struct error *err);
/* argv[0] is the command's name. Adds to invocation->common and fills the rest: values are for
 * options_finish to free, arguments lent by argv. -EINVAL names the flag and the nearest known one.
 */
int options_read(const struct command *command, int argc, char **argv,
                 struct invocation *invocation, struct error *err);
void options_finish(struct invocation *invocation);

/* The help texts: of a command, and of the flags that commands with these `takes` share. */
void options_print_command(const struct command *command, FILE *out);
void options_print_common(unsigned takes, FILE *out);

#endif
