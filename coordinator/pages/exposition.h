/* exposition.h - writes metrics in Prometheus' text format, version 0.0.4.
 *
 * A family has a name, a help text and a type, and one sample per set of labels; its samples follow
 * it directly. Names end in their base unit (_seconds, _bytes), and those of counters in _total. */
#ifndef COORDINATOR_PAGES_EXPOSITION_H
#define COORDINATOR_PAGES_EXPOSITION_H

#include "common/base/histogram.h"

#include <stddef.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition;

struct exposition *exposition_create(void);
/* Returns the text, which the caller frees, and its size; destroys the exposition. */
char *exposition_finish(struct exposition *exposition, size_t *size);

enum exposition_kind { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_SUMMARY };

/* Begin a family. The name is lent until the next family; help is a single line. */
void exposition_family(struct exposition *exposition, const char *name, enum exposition_kind kind,
                       const char *help);
/* Add a sample to the current family. Labels are pairs of name and value, terminated by NULL;
 * values may be any text. */
void exposition_add(struct exposition *exposition, double value, ...) __attribute__((sentinel));
/* Add a summary: median, 99th percentile, sum and count. `unit` converts the histogram's values to
 * base units. One label, or NULL. */
void exposition_add_summary(struct exposition *exposition, const struct histogram *histogram,
                            double unit, const char *label, const char *value);

/* Resource usage of this process, under the standard names of Prometheus exporters:
 * process_cpu_seconds_total, process_resident_memory_bytes and others. started_s: seconds since
 * 1970. Figures that the system does not provide are left out. */
void exposition_add_process(struct exposition *exposition, double started_s);

#endif
