/* flag.c - reads values of flags. */
#include "coordinator/cli/flag.h"

#include "common/base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TIME_S_MAX (500 * 3600.0) /* its milliseconds fit into an int */
#define SIZE_LEAST ((uint64_t)1 << 20)
#define SIZE_GREATEST ((uint64_t)1 << 50)

static int read_number(const struct flag *flag, const char *text, int64_t *out, struct error *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool whole = end != text && !*end && !errno && number >= flag->least;
    if (flag->greatest && (!whole || number > flag->greatest))
        return error_set(err, -EINVAL, "--%s '%s' must be a whole number, %lld to %lld", flag->name,
                         text, (long long)flag->least, (long long)flag->greatest);
    if (!whole)
        return error_set(err, -EINVAL, "--%s '%s' must be a whole number, at least %lld",
                         flag->name, text, (long long)flag->least);
    *out = number;
    return 0;
}

/* Zero is refused because it stands for a missing flag. */
static int read_time(const struct flag *flag, const char *text, double *out, struct error *err)
{
    double seconds, most = flag->greatest ? (double)flag->greatest : TIME_S_MAX;
    int rc = units_seconds(text, &seconds, err);
    if (rc < 0)
        return error_prefix(err, rc, "--%s", flag->name);
    if (seconds <= 0 || seconds > most)
        return error_set(err, -EINVAL, "--%s '%s' must be more than zero, and at most %.0fh",
                         flag->name, text, most / 3600);
    *out = seconds;
    return 0;
}

static int read_size(const struct flag *flag, const char *text, uint64_t *out, struct error *err)
{
    uint64_t bytes;
    int rc = units_bytes(text, &bytes, err);
    if (rc < 0)
        return error_prefix(err, rc, "--%s", flag->name);
    if (bytes < SIZE_LEAST || bytes > SIZE_GREATEST)
        return error_set(err, -EINVAL, "--%s '%s' must be a size with its unit, 1MiB to 1024TiB",
                         flag->name, text);
    *out = bytes;
    return 0;
}

int flag_read_word(const struct flag *flag, const char *text, int *out, struct error *err)
{
    size_t used = 0;
    char known[256] = "";
    for (int i = 0; flag->words[i]; i++) {
        if (strcmp(flag->words[i], text) == 0) {
            *out = i;
            return 0;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     flag->words[i]);
    }
    return error_set(err, -EINVAL, "--%s '%s' is unknown; known: %s", flag->name, text, known);
}

int flag_read(const struct flag *flag, const char *text, void *target, struct error *err)
{
    void *value = (char *)target + flag->offset;
    switch (flag->kind) {
    case FLAG_SWITCH:
        *(bool *)value = true;
        return 0;
    case FLAG_TEXT:
        *(const char **)value = text;
        return 0;
    case FLAG_NUMBER:
        return read_number(flag, text, value, err);
    case FLAG_TIME:
        return read_time(flag, text, value, err);
    case FLAG_SIZE:
        return read_size(flag, text, value, err);
    case FLAG_WORD:
        return flag_read_word(flag, text, value, err);
    }
    return 0;
}

void flag_print(const struct flag *flag, FILE *out)
{
    char left[64], letter[8] = "   ";
    if (flag->letter)
        snprintf(letter, sizeof letter, "-%c,", flag->letter);
    snprintf(left, sizeof left, "%s --%s%s%s", letter, flag->name, flag->value ? " " : "",
             flag->value ? flag->value : "");
    fprintf(out, "  %-26s %s\n", left, flag->help);
}
