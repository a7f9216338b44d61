/* fields.c - what a table and its struct are enough for: defaults, freeing, look-up, and single
 * values from text and to text. How a value of a kind is stored, set, printed and described is that
 * kind's row. */
#include "common/config/fields.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    size_t size;                  /* of a value */
    const char *what;             /* what to write; numbers have their limits added */
    const char *none;             /* what a text is said to be that is no such value */
    enum units_quantity quantity; /* numbers with a unit */
    bool is_number;
    int (*set)(const struct field *field, const char *text, void *at, struct error *err);
    char *(*print)(const struct field *field, const void *at); /* NULL: not given */
};

static const struct kind kinds[FIELD_SECTIONS + 1];

/* "'value' is not a size: write a size with its unit, 1MiB to 1TiB" */
static int field_refuse(const struct field *field, const char *text, const char *reason,
                        struct error *err)
{
    char right[512];
    return error_set(err, -EINVAL, "'%.200s' is %s: write %s", text, reason,
                     field_describe(field, right, sizeof right));
}

/* Setting and printing, kind by kind. */

static bool in_range(const struct field *field, double value)
{
    return (field->above ? value > field->least : value >= field->least) &&
           (field->below ? value < field->greatest : value <= field->greatest);
}

static int set_integer(const struct field *field, const char *text, void *at, struct error *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)text[0]))
        return field_refuse(field, text, kinds[field->kind].none, err);
    if (errno == ERANGE || !in_range(field, (double)value))
        return field_refuse(field, text, "out of range", err);
    *(int64_t *)at = value;
    return 0;
}

static int set_real(const struct field *field, const char *text, void *at, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)text[0]) || strpbrk(text, "xXnN"))
        return field_refuse(field, text, kinds[field->kind].none, err);
    if (!in_range(field, value))
        return field_refuse(field, text, "out of range", err);
    *(double *)at = value;
    return 0;
}

static int set_quantity(const struct field *field, const char *text, void *at, struct error *err)
{
    double value;
    if (units_parse(kinds[field->kind].quantity, text, &value, NULL) < 0)
        return field_refuse(field, text, kinds[field->kind].none, err);
    if (!in_range(field, value))
        return field_refuse(field, text, "out of range", err);
    *(double *)at = value;
    return 0;
}

/* Who leaves out the unit may have meant another one than bytes. */
static bool has_unit(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && isalpha((unsigned char)text[length - 1]);
}

static int set_size(const struct field *field, const char *text, void *at, struct error *err)
{
    double value;
    if (units_parse(UNITS_BYTES, text, &value, NULL) < 0)
        return field_refuse(field, text, kinds[field->kind].none, err);
    uint64_t bytes = (uint64_t)value;
    if (!in_range(field, (double)bytes))
        return field_refuse(field, text,
                            has_unit(text) ? "out of range" : "a number of bytes, and out of range",
                            err);
    *(uint64_t *)at = bytes;
    return 0;
}

static char *print_number(const struct field *field, char *out, size_t size, double value)
{
    if (field->kind == FIELD_INTEGER || field->kind == FIELD_REAL)
        return units_print_real(out, size, value);
    return units_print_exact(out, size, kinds[field->kind].quantity, value);
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

static char *print_integer(const struct field *field, const void *at)
{
    int64_t value = *(const int64_t *)at;
    return value == 0 ? print_given(field, 0) : xasprintf("%" PRId64, value);
}

static char *print_double(const struct field *field, const void *at)
{
    return print_given(field, *(const double *)at);
}

static char *print_size(const struct field *field, const void *at)
{
    return print_given(field, (double)*(const uint64_t *)at);
}

static int set_boolean(const struct field *field, const char *text, void *at, struct error *err)
{
    bool is_true = strcmp(text, "true") == 0;
    if (!is_true && strcmp(text, "false") != 0)
        return field_refuse(field, text, kinds[field->kind].none, err);
    *(bool *)at = is_true;
    return 0;
}

static char *print_boolean(const struct field *field, const void *at)
{
    (void)field;
    return xstrdup(*(const bool *)at ? "true" : "false");
}

static int set_answer(const struct field *field, const char *text, void *at, struct error *err)
{
    bool is_yes = false;
    int rc = set_boolean(field, text, &is_yes, err);
    if (rc == 0)
        *(enum answer *)at = is_yes ? ANSWER_YES : ANSWER_NO;
    return rc;
}

static char *print_answer(const struct field *field, const void *at)
{
    enum answer answer = *(const enum answer *)at;
    bool is_yes = answer == ANSWER_YES;
    return answer == ANSWER_NONE ? NULL : print_boolean(field, &is_yes);
}

static int find_word(const struct field *field, const char *text)
{
    for (int i = 0; field->words[i]; i++)
        if (strcmp(field->words[i], text) == 0)
            return i;
    return -1;
}

static int set_choice(const struct field *field, const char *text, void *at, struct error *err)
{
    int word = find_word(field, text);
    if (word < 0)
        return field_refuse(field, text, kinds[field->kind].none, err);
    *(int *)at = word;
    return 0;
}

static char *print_choice(const struct field *field, const void *at)
{
    return xstrdup(field->words[*(const int *)at]);
}

static int check_text(const struct field *field, const char *text, struct error *err)
{
    if (!*text)
        return field_refuse(field, text, "empty", err);
    if (!text_valid(text))
        return field_refuse(field, text, "not UTF-8", err);
    return 0;
}

static int set_text(const struct field *field, const char *text, void *at, struct error *err)
{
    int rc = check_text(field, text, err);
    if (rc < 0)
        return rc;
    free(*(char **)at);
    *(char **)at = xstrdup(text);
    return 0;
}

static char *print_text(const struct field *field, const void *at)
{
    (void)field;
    return *(char *const *)at ? xstrdup(*(char *const *)at) : NULL;
}

/* Append one item to a list of either kind. */
static int append_item(const struct field *field, const char *text, void *at, struct error *err)
{
    if (field->kind == FIELD_CHOICES) {
        int word = find_word(field, text);
        if (word < 0)
            return field_refuse(field, text, kinds[field->kind].none, err);
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
static int append_items(const struct field *field, const char *text, void *at, struct error *err)
{
    char *copy = xstrdup(text), *rest = copy, *item;
    int rc = 0;
    while (rc == 0 && (item = strsep(&rest, ",")))
        rc = append_item(field, item, at, err);
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
    memcpy(at, &fresh, kinds[field->kind].size);
    return 0;
}

/* Join items with commas, as set_list() splits them. */
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

static char *print_choices(const struct field *field, const void *at)
{
    uint32_t set = *(const uint32_t *)at;
    const char *items[32];
    size_t count = 0;
    for (size_t i = 0; field->words[i]; i++)
        if (set >> i & 1)
            items[count++] = field->words[i];
    return count ? join_items(items, count) : NULL;
}

static char *print_texts(const struct field *field, const void *at)
{
    const struct texts *texts = at;
    (void)field;
    return texts->count ? join_items((const char *const *)texts->items, texts->count) : NULL;
}

static int set_section(const struct field *field, const char *text, void *at, struct error *err)
{
    (void)at;
    return field_refuse(field, text, kinds[field->kind].none, err);
}

static char *print_section(const struct field *field, const void *at)
{
    (void)field, (void)at;
    return NULL;
}

static const struct kind kinds[] = {
    [FIELD_INTEGER] = {sizeof(int64_t), "a whole number", "not a whole number", .is_number = true,
                       .set = set_integer, .print = print_integer},
    [FIELD_REAL] = {sizeof(double), "a number", "not a number", .is_number = true, .set = set_real,
                    .print = print_double},
    [FIELD_SIZE] = {sizeof(uint64_t), "a size with its unit", "not a size", UNITS_BYTES, true,
                    set_size, print_size},
    [FIELD_DURATION] = {sizeof(double), "a duration with its unit", "not a duration", UNITS_SECONDS,
                        true, set_quantity, print_double},
    [FIELD_BANDWIDTH] = {sizeof(double), "a bandwidth with its unit, as in 100Gbit/s or 12GB/s",
                         "not a bandwidth", UNITS_BANDWIDTH, true, set_quantity, print_double},
    [FIELD_FLOPS] = {sizeof(double), "a speed with its unit, as in 16.3TFLOP/s", "not a speed",
                     UNITS_FLOPS, true, set_quantity, print_double},
    [FIELD_BOOLEAN] = {sizeof(bool), "true or false", "neither", .set = set_boolean,
                       .print = print_boolean},
    [FIELD_ANSWER] = {sizeof(enum answer), "true or false", "neither", .set = set_answer,
                      .print = print_answer},
    [FIELD_CHOICE] = {sizeof(int), "", "not known", .set = set_choice, .print = print_choice},
    [FIELD_CHOICES] = {sizeof(uint32_t), ", or a list of them", "not known", .set = set_list,
                       .print = print_choices},
    [FIELD_TEXT] = {sizeof(char *), "a string", "", .set = set_text, .print = print_text},
    [FIELD_TEXTS] = {sizeof(struct texts), "a string or a list of strings", "", .set = set_list,
                     .print = print_texts},
    [FIELD_SECTION] = {0, "a section of keys and values", "not a section", .set = set_section,
                       .print = print_section},
    [FIELD_SECTIONS] = {sizeof(struct sections), "sections of keys and values", "not a section",
                        .set = set_section, .print = print_section},
};

int field_set(const struct field *field, const char *text, void *values, struct error *err)
{
    return kinds[field->kind].set(field, text, (char *)values + field->offset, err);
}

int field_append(const struct field *field, const char *text, void *values, struct error *err)
{
    return append_item(field, text, (char *)values + field->offset, err);
}

char *field_print(const struct field *field, const void *values)
{
    return kinds[field->kind].print(field, (const char *)values + field->offset);
}

/* "f32 or bf16" */
static size_t join_words(char *out, size_t size, const char *const *words)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; words[i] && used < size; i++) {
        const char *joint = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", joint, words[i]);
    }
    return used < size ? used : size - 1;
}

static void describe_number(const struct field *field, char *out, size_t size)
{
    char what[96], least[64], greatest[64];
    bool has_own_unit = field->kind == FIELD_INTEGER || field->kind == FIELD_REAL;
    snprintf(what, sizeof what, has_own_unit ? "%s (%s)" : "%s", kinds[field->kind].what,
             field->unit);
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
    const struct kind *kind = &kinds[field->kind];
    size_t used = 0;
    if (kind->is_number) {
        describe_number(field, out, size);
        return out;
    }
    if (field->kind == FIELD_SECTIONS)
        used = (size_t)snprintf(out, size, "a list of at most %.0f ", field->greatest);
    else if (field->words)
        used = join_words(out, size, field->words);
    if (used < size)
        snprintf(out + used, size - used, "%s", kind->what);
    return out;
}

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
        memset(at, 0, kinds[field->kind].size);
    }
}

/* Of lists of different lengths only these are told. */
static void sections_compare(const struct field *field, const struct sections *one,
                             const struct sections *other, const char *path,
                             fields_differ_cb *differ, void *context)
{
    char counts[2][32], prefix[200];
    snprintf(counts[0], sizeof counts[0], "a list of %zu", one->count);
    snprintf(counts[1], sizeof counts[1], "a list of %zu", other->count);
    if (one->count != other->count)
        differ(context, path, counts[0], counts[1]);
    for (size_t i = 0; i < one->count && one->count == other->count; i++) {
        snprintf(prefix, sizeof prefix, "%s[%zu].", path, i);
        fields_compare(field->fields, (const char *)one->items + i * field->size,
                       (const char *)other->items + i * field->size, prefix, differ, context);
    }
}

void fields_compare(const struct field *fields, const void *one, const void *other,
                    const char *prefix, fields_differ_cb *differ, void *context)
{
    for (const struct field *field = fields; field->key; field++) {
        const char *a = (const char *)one + field->offset, *b = (const char *)other + field->offset;
        char path[160];
        snprintf(path, sizeof path, "%s%s%s", prefix, field->key,
                 field->kind == FIELD_SECTION ? "." : "");
        if (field->kind == FIELD_SECTION) {
            fields_compare(field->fields, a, b, path, differ, context);
        } else if (field->kind == FIELD_SECTIONS) {
            sections_compare(field, (const struct sections *)(const void *)a,
                             (const struct sections *)(const void *)b, path, differ, context);
        } else {
            char *here = field_print(field, one), *there = field_print(field, other);
            if (!here != !there || (here && strcmp(here, there) != 0))
                differ(context, path, here, there);
            free(here);
            free(there);
        }
    }
}

const struct field *fields_find(const struct field *fields, const char *key)
{
    for (const struct field *field = fields; field->key; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}
