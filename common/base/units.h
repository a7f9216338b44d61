/* units.h - "2GiB" and "30s" to numbers, and back for people. */
#ifndef COMMON_BASE_UNITS_H
#define COMMON_BASE_UNITS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* "512", "64KiB", "1.5GiB", "2GB" -> bytes. -EINVAL names the text and what would be right. */
int units_bytes(const char *text, uint64_t *bytes, struct error *err);
/* "250ms", "30s", "10m", "2h" -> seconds; a bare number is refused. */
int units_seconds(const char *text, double *seconds, struct error *err);
/* "12.5GB/s", "100Gbit/s" -> bytes per second; a bare number is refused. */
int units_bandwidth(const char *text, double *bytes_per_s, struct error *err);
/* "16.3TFLOP/s" -> floating-point operations per second; a bare number is refused. */
int units_flops(const char *text, double *flops, struct error *err);
/* "1.5 GiB", "3.20 ms"; writes at most size characters and returns out. */
char *units_print_bytes(char *out, size_t size, double bytes);
char *units_print_seconds(char *out, size_t size, double seconds);
/* In whole seconds and two units at most, as what people wait for: "3h12m", "4m05s", "12s". */
char *units_print_duration(char *out, size_t size, double seconds);
/* "2026-11-26 09:13", by this place's calendar; of milliseconds since 1970. */
char *units_print_minute(char *out, size_t size, uint64_t unix_ms);

#endif
