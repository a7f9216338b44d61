/* flags.h - a command line as tables: a row per flag says where its value goes, how it is read, and
 * what the help says of it.
 *
 * Flags and arguments may come in any order; "--" ends the flags. A name may be cut where it is
 * still the only one, and its value may follow it or an equals sign. Whatever is wrong with a flag
 * is said in one sentence, with the flag that was perhaps meant. */
#ifndef COMMON_BASE_FLAGS_H
#define COMMON_BASE_FLAGS_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The type of the value at the row's offset. */
enum flag_kind {
    FLAG_SWITCH,  /* bool; takes no value */
    FLAG_SET,     /* int, becomes `standard`; takes no value, either */
    FLAG_TEXT,    /* const char *, lent by the command line */
    FLAG_OPTION,  /* the same, and "" if no =VALUE follows: it does not take the next word */
    FLAG_NUMBER,  /* int64_t, between least and greatest */
    FLAG_INTEGER, /* int, likewise; as it was if the flag is missing */
    FLAG_REAL,    /* double */
    FLAG_TIME,    /* double, seconds, as in "30s": positive, up to greatest or else 500h */
    FLAG_SIZE,    /* uint64_t, bytes, as in "16GiB": 1MiB to 1024TiB, as in a job file */
    FLAG_WORD,    /* int, an index into words */
};

struct flag {
    const char *name; /* as in "no-headers"; NULL ends the table */
    char letter;      /* 0: none */
    enum flag_kind kind;
    size_t offset;
    const char *value; /* what the help calls it, as in "FILE"; NULL for switches */
    const char *help;
    int64_t least, standard;  /* numbers; standard: FLAG_NUMBER without the flag */
    const char *const *words; /* ends with NULL; of a text: those to offer */
    int64_t greatest;         /* numbers, 0: no limit; times in seconds, 0: as above */
};

/* A table and the struct that its rows read into, both lent. Of flags with the same letter, that of
 * the first table has it. */
struct flag_table {
    const struct flag *flags; /* NULL: none */
    void *target;
    uint64_t given; /* set by flags_read(): bit i for row i */
};

/* Read argv[1] and what follows. `help` says who lists the flags, as in "see --help". *next becomes
 * the index of the first argument: behind all flags, since arguments are moved there; or, with
 * `leading`, of the first word that is no flag. -EINVAL with a sentence. */
int flags_read(struct flag_table *tables, size_t count, const char *help, bool leading, int argc,
               char **argv, int *next, struct error *err);
/* Find the index of the text in the flag's words. -EINVAL; the message lists the words. */
int flags_read_word(const struct flag *flag, const char *text, int *out, struct error *err);
/* Print the help of one, as in "  -o, --output FORMAT       table, wide, ...", in lines of at most
 * 100 columns. */
void flags_print(const struct flag *flag, FILE *out);

#endif
