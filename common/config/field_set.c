/* field_set.c - parses one value from text into the struct, or says what would be right. */
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
