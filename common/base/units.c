/* units.c - quantities as people write them: a number, then a unit from a table. */
#include "common/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit bytes_units[] = {
    {"", 1},     {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12},    {NULL, 0},
};
static const struct unit rate_units[] = {
    {"B/s", 1},          {"KB/s", 1e3},       {"MB/s", 1e6},        {"GB/s", 1e9},
    {"TB/s", 1e12},      {"KiB/s", 0x1p10},   {"MiB/s", 0x1p20},    {"GiB/s", 0x1p30},
    {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}, {NULL, 0},
};
static const struct unit flops_units[] = {
    {"FLOP/s", 1},     {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
    {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {NULL, 0},
};

/* Parses a number followed by a known unit. Negative or infinite numbers and trailing text are
 * refused. */
static int parse(const char *text, const struct unit *units, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number) || number < 0)
        return -EINVAL;
    while (*end == ' ')
        end++;
    for (; units->name; units++) {
        if (strcmp(units->name, end) == 0) {
            *value = number * units->factor;
            return 0;
        }
    }
    return -EINVAL;
}

int units_bytes(const char *text, uint64_t *bytes, struct error *err)
{
    double value;
    if (parse(text, bytes_units, &value) < 0 || value >= 0x1p63)
        return error_set(err, -EINVAL,
                         "'%s' is not a size: write a number and B, KiB, MiB, GiB or TiB", text);
    *bytes = (uint64_t)value;
    return 0;
}

int units_seconds(const char *text, double *seconds, struct error *err)
{
    if (parse(text, time_units, seconds) < 0)
        return error_set(err, -EINVAL,
                         "'%s' is not a duration: write a number and us, ms, s, m or h", text);
    return 0;
}

int units_bandwidth(const char *text, double *bytes_per_s, struct error *err)
{
    if (parse(text, rate_units, bytes_per_s) < 0)
        return error_set(err, -EINVAL,
                         "'%s' is not a bandwidth: write a number and MB/s, GB/s or Gbit/s", text);
    return 0;
}

int units_flops(const char *text, double *flops, struct error *err)
{
    if (parse(text, flops_units, flops) < 0)
        return error_set(err, -EINVAL,
                         "'%s' is not a speed: write a number and GFLOP/s, TFLOP/s or PFLOP/s",
                         text);
    return 0;
}

char *units_print_bytes(char *out, size_t size, double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof names / sizeof *names) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", bytes, names[unit]);
    return out;
}

char *units_print_seconds(char *out, size_t size, double seconds)
{
    if (seconds < 1e-3)
        snprintf(out, size, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(out, size, "%.2f ms", seconds * 1e3);
    else if (seconds < 120)
        snprintf(out, size, "%.2f s", seconds);
    else
        units_print_duration(out, size, seconds);
    return out;
}

char *units_print_count(char *out, size_t size, double count)
{
    const char *unit = "";
    if (count >= 999500) {
        count /= 1e6;
        unit = "M";
    } else if (count >= 999.5) {
        count /= 1e3;
        unit = "k";
    }
    snprintf(out, size, count < 9.95 && *unit ? "%.1f%s" : "%.0f%s", count, unit);
    return out;
}

char *units_print_duration(char *out, size_t size, double seconds)
{
    unsigned long long s = (unsigned long long)(seconds < 0 ? 0 : seconds + 0.5);
    if (s >= 86400)
        snprintf(out, size, "%llud%02lluh", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(out, size, "%lluh%02llum", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(out, size, "%llum%02llus", s / 60, s % 60);
    else
        snprintf(out, size, "%llus", s);
    return out;
}

char *units_print_minute(char *out, size_t size, uint64_t unix_ms)
{
    time_t when = (time_t)(unix_ms / 1000);
    struct tm parts;
    if (!localtime_r(&when, &parts) || strftime(out, size, "%Y-%m-%d %H:%M", &parts) == 0)
        snprintf(out, size, "?");
    return out;
}
