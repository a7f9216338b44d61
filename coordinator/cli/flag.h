/* flag.h - one flag as a row: where its value goes, how it is read, and its line of help. */
#ifndef COORDINATOR_CLI_FLAG_H
#define COORDINATOR_CLI_FLAG_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How a value lies at its row's offset. */
enum flag_kind {
    FLAG_SWITCH, /* bool; takes no value */
    FLAG_TEXT,   /* const char *, lent by the command line */
    FLAG_NUMBER, /* int64_t, not below least, nor above greatest */
    FLAG_TIME,   /* double, seconds; "30s": more than none, at most greatest, or 500h */
    FLAG_SIZE,   /* uint64_t, bytes; "16GiB": 1MiB to 1024TiB, as in a job file */
    FLAG_WORD,   /* int, an index into words */
};

struct flag {
    const char *name; /* "no-headers"; NULL ends the table */
    char letter;      /* or 0 */
    enum flag_kind kind;
    size_t offset;
    const char *value; /* what the help calls it, "FILE"; NULL for switches */
    const char *help;
    int64_t least, standard;  /* of numbers; standard: where the flag is not given */
    const char *const *words; /* ended by NULL */
    int64_t greatest;         /* of numbers, 0: none; of times in seconds, 0: as above */
};

/* Read text into the member of target that the flag names; text is NULL for a switch, and is lent
 * to target. -EINVAL in words. */
int flag_read(const struct flag *flag, const char *text, void *target, struct error *err);
/* The index of text in the flag's words. -EINVAL says which there are. */
int flag_read_word(const struct flag *flag, const char *text, int *out, struct error *err);
/* "  -o, --output FORMAT       table, wide, ...". */
void flag_print(const struct flag *flag, FILE *out);

#endif
