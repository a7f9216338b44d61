/* units.h - parses quantities with units such as "2GiB" and "30s", and formats them for people.
 *
 * Parsers return -EINVAL, with the text given and what would be right. Formatters write at most
 * `size` bytes and return `out`. */
#ifndef COMMON_BASE_UNITS_H
#define COMMON_BASE_UNITS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum units_quantity {
    UNITS_BYTES,     /* "512", "64KiB", "1.5GiB", "2GB"; below 2^63 */
    UNITS_SECONDS,   /* "250ms", "30s", "10m", "2h"; a bare number is refused, as it is below */
    UNITS_BANDWIDTH, /* bytes per second: "12.5GB/s", "100Gbit/s" */
    UNITS_FLOPS,     /* floating-point operations per second: "16.3TFLOP/s" */
};

/* Negative or infinite numbers and trailing text are refused. */
int units_parse(enum units_quantity quantity, const char *text, double *value, struct error *err);
/* In the largest unit in which it is whole, or as a fraction of the base unit: what is parsed again
 * is the same number. */
char *units_print_exact(char *out, size_t size, enum units_quantity quantity, double value);
/* The fewest digits that read back as the same number. */
char *units_print_real(char *out, size_t size, double value);
/* "1.5 GiB" */
char *units_print_bytes(char *out, size_t size, double bytes);
/* "3.20 ms" */
char *units_print_seconds(char *out, size_t size, double seconds);
/* A number of things: "987", "9.8k", "411k", "1.2M" */
char *units_print_count(char *out, size_t size, double count);
/* A duration that people wait for, in whole seconds and at most two units: "3h12m", "4m05s". */
char *units_print_duration(char *out, size_t size, double seconds);
/* Milliseconds since 1970 as local time: "2026-11-26 09:13". */
char *units_print_minute(char *out, size_t size, uint64_t unix_ms);

#endif
