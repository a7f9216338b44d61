/* printing.h - prints what the tree only reads, so that tests can see whether everything that was
 * read comes back: a struct by its table of fields, and reports as the recorded cluster that
 * hardware_reports_from_json() reads. */
#ifndef TESTS_SUPPORT_PRINTING_H
#define TESTS_SUPPORT_PRINTING_H

#include "common/config/fields.h"
#include "common/hardware/hardware.h"

/* The values as a YAML document, freed by the caller; reading it gives equal values. */
char *fields_print(const struct field *fields, const void *values);

json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count);

#endif
