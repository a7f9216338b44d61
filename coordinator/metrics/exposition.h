/* exposition.h - figures as Prometheus reads them: its text format, version 0.0.4.
 *
 * A family is a name, what it means and a type, and has a sample for each set of labels; all
 * samples of a family follow it. Units are base units, and end the name: _seconds, _bytes; what
 * only grows ends in _total. */
#ifndef COORDINATOR_METRICS_EXPOSITION_H
#define COORDINATOR_METRICS_EXPOSITION_H

#include "common/base/histogram.h"

#include <stddef.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition;

struct exposition *exposition_create(void);
/* The text, yours with its size; the exposition is gone. */
char *exposition_finish(struct exposition *exposition, size_t *size);

enum exposition_kind { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_SUMMARY };

/* The name is lent until the next family; help is one line. */
void exposition_family(struct exposition *exposition, const char *name, enum exposition_kind kind,
                       const char *help);
/* A sample of the last family. Labels are pairs of name and value, up to NULL: values may be any
 * text. */
void exposition_add(struct exposition *exposition, double value, ...) __attribute__((sentinel));
/* The same of a summary: its median, 99th percentile, sum and count; the histogram's values times
 * `unit` are in base units. One label, or NULL. */
void exposition_add_summary(struct exposition *exposition, const struct histogram *histogram,
                            double unit, const char *label, const char *value);

#endif
