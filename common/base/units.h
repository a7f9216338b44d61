/* units.h - parses quantities with units such as "2GiB" and "30s", and formats them for people.
 *
 * Parsers return -EINVAL, with the text given and what would be right. Formatters write at most
 * `size` bytes and return `out`. */
#ifndef COMMON_BASE_UNITS_H
#define COMMON_BASE_UNITS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* "512", "64KiB", "1.5GiB", "2GB" -> bytes. */
int units_bytes(const char *text, uint64_t *bytes, struct error *err);
/* "250ms", "30s", "10m", "2h" -> seconds; a bare number is refused. */
int units_seconds(const char *text, double *seconds, struct error *err);
/* "12.5GB/s", "100Gbit/s" -> bytes per second; a bare number is refused. */
int units_bandwidth(const char *text, double *bytes_per_s, struct error *err);
/* "16.3TFLOP/s" -> floating-point operations per second; a bare number is refused. */
int units_flops(const char *text, double *flops, struct error *err);
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
