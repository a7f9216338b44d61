/* error.h - words for the person, beside the errno for the program.
 *
 * A function that can fail returns 0 or a negative errno and writes one sentence here:
 * where, what, and what would be right. Whoever fails writes it, each caller may put its
 * own words in front, and only the top of a program logs it. */
#ifndef COMMON_BASE_ERROR_H
#define COMMON_BASE_ERROR_H

#include <stdarg.h>

#define ERROR_SIZE 1024

struct error {
    char text[ERROR_SIZE];
};

/* Write the sentence and return rc, so that a failure is one line. err may be NULL. */
int error_set(struct error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "format: " in front of what err says, and return rc. */
int error_prefix(struct error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
