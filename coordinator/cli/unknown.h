/* unknown.h - what is wrong with a flag that is not known, and which one was perhaps meant. */
#ifndef COORDINATOR_CLI_UNKNOWN_H
#define COORDINATOR_CLI_UNKNOWN_H

#include "common/base/error.h"
#include "coordinator/cli/flag.h"

#include <stddef.h>

/* The flags that are known where the unknown one is; all lent. */
struct known_flags {
    const char *command; /* "": in front of the command's name */
    const struct flag *const *flags;
    size_t count;
};

/* The flag whose name has one dash too few: that of "-quiet", and of "-file=job.yaml". NULL: it is
 * no flag's name, but letters. */
const struct flag *unknown_dash(const struct known_flags *known, const char *word);

/* These refuse: -EINVAL with a sentence. */

/* A word such as "--rnak=3". */
int unknown_name(const struct known_flags *known, const char *word, struct error *err);
/* `letter` points into the word, such as "-ax", whose letters before it are known. */
int unknown_letter(const struct known_flags *known, const char *word, const char *letter,
                   struct error *err);

#endif
