/* units.c - quantities as people write them, a number and a unit from one table per quantity; and
 * as they read them, in the largest unit in which they are whole, or rounded. */
#include "common/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct unit {
    const char *name;
    double factor;
};

/* Of each quantity first the units in which it is printed exactly, the largest first, then others
 * that are only read. */
static const struct unit bytes_units[] = {
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1},     {NULL, 0},
    {"", 1},         {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"h", 3600},  {"m", 60}, {"s", 1},     {"ms", 1e-3},
    {"us", 1e-6}, {NULL, 0}, {"d", 86400}, {NULL, 0},
};
static const struct unit rate_units[] = {
    {"TB/s", 1e12},    {"GB/s", 1e9},       {"MB/s", 1e6},       {"KB/s", 1e3},
    {"B/s", 1},        {NULL, 0},           {"KiB/s", 0x1p10},   {"MiB/s", 0x1p20},
    {"GiB/s", 0x1p30}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8},
    {NULL, 0},
};
static const struct unit flops_units[] = {
    {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6},
    {"FLOP/s", 1},     {NULL, 0},         {NULL, 0},
};

static const struct quantity {
    const struct unit *units;
    const char *base; /* the unit with factor 1 */
    double below;     /* what the type that holds it cannot */
    const char *what, *right;
} quantities[] = {
    [UNITS_BYTES] = {bytes_units, "B", 0x1p63, "a size", "B, KiB, MiB, GiB or TiB"},
    [UNITS_SECONDS] = {time_units, "s", INFINITY, "a duration", "us, ms, s, m, h or d"},
    [UNITS_BANDWIDTH] = {rate_units, "B/s", INFINITY, "a bandwidth", "MB/s, GB/s or Gbit/s"},
    [UNITS_FLOPS] = {flops_units, "FLOP/s", INFINITY, "a speed", "GFLOP/s, TFLOP/s or PFLOP/s"},
};

static const struct unit *find_unit(const struct unit *units, const char *name)
{
    for (int lists = 0; lists < 2; units++, lists++)
        for (; units->name; units++)
            if (strcmp(units->name, name) == 0)
                return units;
    return NULL;
}

int units_parse(enum units_quantity quantity, const char *text, double *value, struct error *err)
{
    const struct quantity *of = &quantities[quantity];
    char *end;
    double number = strtod(text, &end);
    bool is_number = end != text && isfinite(number) && number >= 0;
    while (*end == ' ')
        end++;
    const struct unit *unit = is_number ? find_unit(of->units, end) : NULL;
    if (!unit || number * unit->factor >= of->below)
        return error_set(err, -EINVAL, "'%s' is not %s: write a number and %s", text, of->what,
                         of->right);
    *value = number * unit->factor;
    return 0;
}

char *units_print_real(char *out, size_t size, double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    /* "1e+09" is harder to read than its digits. */
    if (strchr(out, 'e') && fabs(value) >= 1 && fabs(value) < 1e16)
        snprintf(out, size, "%.0f", value);
    return out;
}

char *units_print_exact(char *out, size_t size, enum units_quantity quantity, double value)
{
    for (const struct unit *unit = quantities[quantity].units; unit->name; unit++) {
        double count = round(value / unit->factor);
        if (count >= 1 && count < 0x1p53 && count * unit->factor == value) {
            snprintf(out, size, "%.0f%s", count, unit->name);
            return out;
        }
    }
    char number[64];
    snprintf(out, size, "%s%s", units_print_real(number, sizeof number, value),
             quantities[quantity].base);
    return out;
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
