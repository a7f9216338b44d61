/* flag.h - describes one flag by a row: where its value goes, how it is read, and its help text. */
#ifndef COORDINATOR_CLI_FLAG_H
#define COORDINATOR_CLI_FLAG_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The type of the value at the row's offset. */
enum flag_kind {
    FLAG_SWITCH, /* bool; takes no value */
    FLAG_TEXT,   /* const char *, lent by the command line */
    FLAG_NUMBER, /* int64_t, between least and greatest */
    FLAG_TIME,   /* double, seconds, as in "30s": positive, up to greatest or else 500h */
    FLAG_SIZE,   /* uint64_t, bytes, as in "16GiB": 1MiB to 1024TiB, as in a job file */
    FLAG_WORD,   /* int, an index into words */
};

struct flag {
    const char *name; /* as in "no-headers"; NULL ends the table */
    char letter;      /* 0: none */
    enum flag_kind kind;
    size_t offset;
    const char *value; /* what the help calls it, as in "FILE"; NULL for switches */
    const char *help;
    int64_t least, standard;  /* for numbers; standard: the value if the flag is missing */
    const char *const *words; /* ends with NULL; of a text: those to offer */
    int64_t greatest;         /* for numbers, 0: no limit; for times in seconds, 0: as above */
};

/* Read text into the member of `target` that the flag describes. The text is NULL for a switch, and
 * is lent to target. -EINVAL with a message. */
int flag_read(const struct flag *flag, const char *text, void *target, struct error *err);
/* Find the index of the text in the flag's words. -EINVAL; the message lists the words. */
int flag_read_word(const struct flag *flag, const char *text, int *out, struct error *err);
/* Print the help, as in "  -o, --output FORMAT       table, wide, ...". */
void flag_print(const struct flag *flag, FILE *out);

#endif
