/* unknown.h - what is wrong with a flag that getopt_long() refuses, and which one was perhaps
 * meant. */
#ifndef COMMON_CONFIG_UNKNOWN_H
#define COMMON_CONFIG_UNKNOWN_H

#include "common/base/error.h"

#include <getopt.h>
#include <stdbool.h>

/* The flags that are known, all lent. */
struct known_flags {
    const struct option *options; /* as getopt_long() has them */
    const char *letters;
    const char *help; /* who lists them, as in "'gimbal jobs -h' lists them" */
};

/* The word that getopt reads from next, "" at the end; getopt itself does not tell. To be called
 * before each call of getopt_long(). */
const char *unknown_next_word(int argc, char **argv);

/* Whether the word is a flag's name with one dash too few, as in "-quiet" or "-file=job.yaml". */
bool unknown_dash(const struct known_flags *known, const char *word);

/* These refuse: -EINVAL with a sentence. */

/* What getopt answered with '?' or ':', the latter for a value that is missing. */
int unknown_refuse(const struct known_flags *known, int result, const char *word,
                   struct error *err);
/* `letter` points into the word, such as "-ax", whose letters before it are known. */
int unknown_letter(const struct known_flags *known, const char *word, const char *letter,
                   struct error *err);

#endif
