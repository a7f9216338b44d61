/* field_print.c - prints a single value, and describes which values are valid. */
#include "common/base/memory.h"
#include "common/config/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scale {
    const char *unit;
    double factor;
};

static const struct scale size_scales[] = {
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}, {NULL, 0},
};
static const struct scale duration_scales[] = {
    {"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {NULL, 0},
};

static const struct scale bandwidth_scales[] = {
    {"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"KB/s", 1e3}, {"B/s", 1}, {NULL, 0},
};
static const struct scale flops_scales[] = {
    {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9},
    {"MFLOP/s", 1e6},  {"FLOP/s", 1},     {NULL, 0},
};

/* Print a number with the fewest digits that read back as the same number. */
static char *print_real(char *out, size_t size, double value)
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

/* Print a value in the largest unit in which it is whole; if there is none, as a fraction of the
 * base unit. */
static char *print_scaled(char *out, size_t size, double value, const struct scale *scales,
                          const char *base_unit)
{
    for (const struct scale *scale = scales; scale->unit; scale++) {
        double count = round(value / scale->factor);
        if (count >= 1 && count < 0x1p53 && count * scale->factor == value) {
            snprintf(out, size, "%.0f%s", count, scale->unit);
            return out;
        }
    }
    char number[64];
    snprintf(out, size, "%s%s", print_real(number, sizeof number, value), base_unit);
    return out;
}

static char *print_number(const struct field *field, char *out, size_t size, double value)
{
    if (field->kind == FIELD_SIZE)
        return print_scaled(out, size, value, size_scales, "B");
    if (field->kind == FIELD_DURATION)
        return print_scaled(out, size, value, duration_scales, "s");
    if (field->kind == FIELD_BANDWIDTH)
        return print_scaled(out, size, value, bandwidth_scales, "B/s");
    if (field->kind == FIELD_FLOPS)
        return print_scaled(out, size, value, flops_scales, "FLOP/s");
    return print_real(out, size, value);
}

/* "f32 or bf16" */
static void join_words(char *out, size_t size, const char *const *words)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; words[i] && used < size; i++) {
        const char *joint = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        int length = snprintf(out + used, size - used, "%s%s", joint, words[i]);
        used += (size_t)length;
    }
}

static void describe_number(const struct field *field, char *out, size_t size)
{
    char what[96], least[64], greatest[64];
    if (field->kind == FIELD_SIZE)
        snprintf(what, sizeof what, "a size with its unit");
    else if (field->kind == FIELD_DURATION)
        snprintf(what, sizeof what, "a duration with its unit");
    else if (field->kind == FIELD_BANDWIDTH)
        snprintf(what, sizeof what, "a bandwidth with its unit, as in 100Gbit/s or 12GB/s");
    else if (field->kind == FIELD_FLOPS)
        snprintf(what, sizeof what, "a speed with its unit, as in 16.3TFLOP/s");
    else
        snprintf(what, sizeof what, "a %s (%s)",
                 field->kind == FIELD_INTEGER ? "whole number" : "number", field->unit);
    print_number(field, least, sizeof least, field->least);
    print_number(field, greatest, sizeof greatest, field->greatest);
    if (!field->above && !field->below)
        snprintf(out, size, "%s, %s to %s", what, least, greatest);
    else
        snprintf(out, size, "%s, %s %s and %s %s", what, field->above ? "above" : "at least", least,
                 field->below ? "below" : "at most", greatest);
}

char *field_describe(const struct field *field, char *out, size_t size)
{
    char words[256];
    switch (field->kind) {
    case FIELD_INTEGER:
    case FIELD_REAL:
    case FIELD_SIZE:
    case FIELD_DURATION:
    case FIELD_BANDWIDTH:
    case FIELD_FLOPS:
        describe_number(field, out, size);
        break;
    case FIELD_BOOLEAN:
    case FIELD_ANSWER:
        snprintf(out, size, "true or false");
        break;
    case FIELD_CHOICE:
        join_words(words, sizeof words, field->words);
        snprintf(out, size, "%s", words);
        break;
    case FIELD_CHOICES:
        join_words(words, sizeof words, field->words);
        snprintf(out, size, "%s, or a list of them", words);
        break;
    case FIELD_TEXT:
        snprintf(out, size, "a string");
        break;
    case FIELD_TEXTS:
        snprintf(out, size, "a string or a list of strings");
        break;
    case FIELD_SECTION:
        snprintf(out, size, "a section of keys and values");
        break;
    case FIELD_SECTIONS:
        snprintf(out, size, "a list of at most %.0f sections of keys and values", field->greatest);
        break;
    }
    return out;
}

/* Join items with commas, as field_set() splits them. */
static char *join_items(const char *const *items, size_t count)
{
    char *text = xstrdup("");
    for (size_t i = 0; i < count; i++) {
        char *longer = xasprintf("%s%s%s", text, i ? "," : "", items[i]);
        free(text);
        text = longer;
    }
    return text;
}

static char *print_choices(const struct field *field, uint32_t set)
{
    const char *items[32];
    size_t count = 0;
    for (size_t i = 0; field->words[i]; i++)
        if (set >> i & 1)
            items[count++] = field->words[i];
    return count ? join_items(items, count) : NULL;
}

/* Zero means "not given", unless the field has a default, or is required and may be zero. */
static char *print_given(const struct field *field, double value)
{
    char text[64];
    bool meant = field->required && field->least <= 0 && !field->above;
    if (value == 0 && !field->standard && !meant)
        return NULL;
    return xstrdup(print_number(field, text, sizeof text, value));
}

static char *print_answer(enum answer answer)
{
    return answer == ANSWER_NONE ? NULL : xstrdup(answer == ANSWER_YES ? "true" : "false");
}

char *field_print(const struct field *field, const void *values)
{
    const void *at = (const char *)values + field->offset;
    const struct texts *texts = at;
    switch (field->kind) {
    case FIELD_INTEGER:
        if (*(const int64_t *)at == 0)
            return print_given(field, 0);
        return xasprintf("%" PRId64, *(const int64_t *)at);
    case FIELD_REAL:
    case FIELD_DURATION:
    case FIELD_BANDWIDTH:
    case FIELD_FLOPS:
        return print_given(field, *(const double *)at);
    case FIELD_SIZE:
        return print_given(field, (double)*(const uint64_t *)at);
    case FIELD_BOOLEAN:
        return xstrdup(*(const bool *)at ? "true" : "false");
    case FIELD_ANSWER:
        return print_answer(*(const enum answer *)at);
    case FIELD_CHOICE:
        return xstrdup(field->words[*(const int *)at]);
    case FIELD_CHOICES:
        return print_choices(field, *(const uint32_t *)at);
    case FIELD_TEXT:
        return *(char *const *)at ? xstrdup(*(char *const *)at) : NULL;
    case FIELD_TEXTS:
        return texts->count ? join_items((const char *const *)texts->items, texts->count) : NULL;
    case FIELD_SECTION:
    case FIELD_SECTIONS:
        break;
    }
    return NULL;
}
