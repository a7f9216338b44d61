/* error.h - error texts for people, to go with the errno for the program.
 *
 * A function that can fail returns 0 or a negative errno, and describes the failure here in one
 * sentence: where it happened, what is wrong, and what would be right. The function that fails
 * writes the text, callers may prefix it with their context, and only the top level of a program
 * logs it. */
#ifndef COMMON_BASE_ERROR_H
#define COMMON_BASE_ERROR_H

#include <stdarg.h>

#define ERROR_SIZE 1024

struct error {
    char text[ERROR_SIZE];
};

/* Write the text and return rc, so that failing takes one line. A text that is too long is cut. err
 * may be NULL. */
int error_set(struct error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prefix the text in err with the formatted one and ": ", and return rc. */
int error_prefix(struct error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
