/* fields.c - what needs only a table and its struct: defaults, freeing and look-up. */
#include "common/config/fields.h"

#include <assert.h>
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
