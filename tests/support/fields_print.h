/* fields_print.h - prints a struct by its table of fields, so that tests can see whether everything
 * that was read comes back. */
#ifndef TESTS_SUPPORT_FIELDS_PRINT_H
#define TESTS_SUPPORT_FIELDS_PRINT_H

#include "common/config/fields.h"

/* The values as a YAML document, freed by the caller; reading it gives equal values. */
char *fields_print(const struct field *fields, const void *values);

#endif
