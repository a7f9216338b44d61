/* fields.c - what needs only a table and its struct: defaults, freeing and look-up. */
#include "common/config/fields.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fields_defaults(const struct field *fields, void *values)
{
    for (const struct field *field = fields; field->key; field++) {
        if (field->kind == FIELD_SECTION) {
            fields_defaults(field->fields, (char *)values + field->offset);
        } else if (field->standard) {
            int rc = field_set(field, field->standard, values, NULL);
            assert(rc == 0 && "a table's default must be right by the table itself");
            (void)rc;
        }
    }
}

static size_t kind_size(enum field_kind kind)
{
    switch (kind) {
    case FIELD_INTEGER:
        return sizeof(int64_t);
    case FIELD_REAL:
    case FIELD_DURATION:
    case FIELD_BANDWIDTH:
    case FIELD_FLOPS:
        return sizeof(double);
    case FIELD_SIZE:
        return sizeof(uint64_t);
    case FIELD_BOOLEAN:
        return sizeof(bool);
    case FIELD_ANSWER:
        return sizeof(enum answer);
    case FIELD_CHOICE:
        return sizeof(int);
    case FIELD_CHOICES:
        return sizeof(uint32_t);
    case FIELD_TEXT:
        return sizeof(char *);
    case FIELD_TEXTS:
        return sizeof(struct texts);
    case FIELD_SECTIONS:
        return sizeof(struct sections);
    case FIELD_SECTION:
        break;
    }
    return 0;
}

void fields_clear(const struct field *fields, void *values)
{
    for (const struct field *field = fields; field->key; field++) {
        void *at = (char *)values + field->offset;
        if (field->kind == FIELD_SECTION)
            fields_clear(field->fields, at);
        if (field->kind == FIELD_TEXT)
            free(*(char **)at);
        if (field->kind == FIELD_TEXTS) {
            struct texts *texts = at;
            for (size_t i = 0; i < texts->count; i++)
                free(texts->items[i]);
            free(texts->items);
        }
        if (field->kind == FIELD_SECTIONS) {
            struct sections *sections = at;
            for (size_t i = 0; i < sections->count; i++)
                fields_clear(field->fields, (char *)sections->items + i * field->size);
            free(sections->items);
        }
        memset(at, 0, kind_size(field->kind));
    }
}

const struct field *fields_find(const struct field *fields, const char *key)
{
    for (const struct field *field = fields; field->key; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

/* field_print.c - prints a single value, and describes which values are valid. */

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

/* field_set.c - parses one value from text into the struct, or says what would be right. */

/* "'value' is not a size: write a size with its unit, 1MiB to 1TiB" */
static int refuse(const struct field *field, const char *text, const char *reason,
                  struct error *err)
{
    char right[512];
    return error_set(err, -EINVAL, "'%.200s' is %s: write %s", text, reason,
                     field_describe(field, right, sizeof right));
}

static bool in_range(const struct field *field, double value)
{
    return (field->above ? value > field->least : value >= field->least) &&
           (field->below ? value < field->greatest : value <= field->greatest);
}

static int set_integer(const struct field *field, const char *text, int64_t *at, struct error *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)text[0]))
        return refuse(field, text, "not a whole number", err);
    if (errno == ERANGE || !in_range(field, (double)value))
        return refuse(field, text, "out of range", err);
    *at = value;
    return 0;
}

static int set_real(const struct field *field, const char *text, double *at, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)text[0]) || strpbrk(text, "xXnN"))
        return refuse(field, text, "not a number", err);
    if (!in_range(field, value))
        return refuse(field, text, "out of range", err);
    *at = value;
    return 0;
}

/* Who leaves out the unit may have meant another one than bytes. */
static bool has_unit(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && isalpha((unsigned char)text[length - 1]);
}

static int set_size(const struct field *field, const char *text, uint64_t *at, struct error *err)
{
    uint64_t bytes;
    if (units_bytes(text, &bytes, NULL) < 0)
        return refuse(field, text, "not a size", err);
    if (!in_range(field, (double)bytes))
        return refuse(field, text,
                      has_unit(text) ? "out of range" : "a number of bytes, and out of range", err);
    *at = bytes;
    return 0;
}

static int set_duration(const struct field *field, const char *text, double *at, struct error *err)
{
    double seconds;
    if (units_seconds(text, &seconds, NULL) < 0)
        return refuse(field, text, "not a duration", err);
    if (!in_range(field, seconds))
        return refuse(field, text, "out of range", err);
    *at = seconds;
    return 0;
}

static int set_bandwidth(const struct field *field, const char *text, double *at, struct error *err)
{
    double rate;
    if (units_bandwidth(text, &rate, NULL) < 0)
        return refuse(field, text, "not a bandwidth", err);
    if (!in_range(field, rate))
        return refuse(field, text, "out of range", err);
    *at = rate;
    return 0;
}

static int set_flops(const struct field *field, const char *text, double *at, struct error *err)
{
    double rate;
    if (units_flops(text, &rate, NULL) < 0)
        return refuse(field, text, "not a speed", err);
    if (!in_range(field, rate))
        return refuse(field, text, "out of range", err);
    *at = rate;
    return 0;
}

static int find_word(const struct field *field, const char *text)
{
    for (int i = 0; field->words[i]; i++)
        if (strcmp(field->words[i], text) == 0)
            return i;
    return -1;
}

static int set_boolean(const struct field *field, const char *text, bool *at, struct error *err)
{
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return refuse(field, text, "neither", err);
    *at = is_true;
    return 0;
}

static int set_answer(const struct field *field, const char *text, enum answer *at,
                      struct error *err)
{
    bool is_yes;
    int rc = set_boolean(field, text, &is_yes, err);
    if (rc == 0)
        *at = is_yes ? ANSWER_YES : ANSWER_NO;
    return rc;
}

static int set_choice(const struct field *field, const char *text, int *at, struct error *err)
{
    int word = find_word(field, text);
    if (word < 0)
        return refuse(field, text, "not known", err);
    *at = word;
    return 0;
}

static int check_text(const struct field *field, const char *text, struct error *err)
{
    if (!*text)
        return refuse(field, text, "empty", err);
    if (!text_valid(text))
        return refuse(field, text, "not UTF-8", err);
    return 0;
}

static int set_text(const struct field *field, const char *text, char **at, struct error *err)
{
    int rc = check_text(field, text, err);
    if (rc < 0)
        return rc;
    free(*at);
    *at = xstrdup(text);
    return 0;
}

int field_append(const struct field *field, const char *text, void *values, struct error *err)
{
    void *at = (char *)values + field->offset;
    if (field->kind == FIELD_CHOICES) {
        int word = find_word(field, text);
        if (word < 0)
            return refuse(field, text, "not known", err);
        *(uint32_t *)at |= UINT32_C(1) << word;
        return 0;
    }
    int rc = check_text(field, text, err);
    if (rc < 0)
        return rc;
    struct texts *texts = at;
    texts->items = grow(texts->items, texts->count, &texts->capacity, sizeof *texts->items);
    texts->items[texts->count++] = xstrdup(text);
    return 0;
}

/* Append the items between commas to an empty list. */
static int append_items(const struct field *field, const char *text, void *values,
                        struct error *err)
{
    char *copy = xstrdup(text), *rest = copy, *item;
    int rc = 0;
    while (rc == 0 && (item = strsep(&rest, ",")))
        rc = field_append(field, item, values, err);
    free(copy);
    return rc;
}

/* Lists are parsed into a fresh list first, so that a wrong item leaves the old list unchanged. */
static int set_list(const struct field *field, const char *text, void *at, struct error *err)
{
    struct field row = *field;
    row.offset = 0;
    const struct field rows[] = {row, {.key = NULL}};
    union {
        struct texts texts;
        uint32_t choices;
    } fresh = {.texts = {0}};
    int rc = append_items(&row, text, &fresh, err);
    if (rc < 0) {
        fields_clear(rows, &fresh);
        return rc;
    }
    fields_clear(rows, at);
    if (field->kind == FIELD_CHOICES)
        *(uint32_t *)at = fresh.choices;
    else
        *(struct texts *)at = fresh.texts;
    return 0;
}

int field_set(const struct field *field, const char *text, void *values, struct error *err)
{
    void *at = (char *)values + field->offset;
    switch (field->kind) {
    case FIELD_INTEGER:
        return set_integer(field, text, at, err);
    case FIELD_REAL:
        return set_real(field, text, at, err);
    case FIELD_SIZE:
        return set_size(field, text, at, err);
    case FIELD_DURATION:
        return set_duration(field, text, at, err);
    case FIELD_BANDWIDTH:
        return set_bandwidth(field, text, at, err);
    case FIELD_FLOPS:
        return set_flops(field, text, at, err);
    case FIELD_BOOLEAN:
        return set_boolean(field, text, at, err);
    case FIELD_ANSWER:
        return set_answer(field, text, at, err);
    case FIELD_CHOICE:
        return set_choice(field, text, at, err);
    case FIELD_TEXT:
        return set_text(field, text, at, err);
    case FIELD_CHOICES:
    case FIELD_TEXTS:
        return set_list(field, text, at, err);
    case FIELD_SECTION:
    case FIELD_SECTIONS:
        break;
    }
    return refuse(field, text, "not a section", err);
}
