/* printing.c - prints a struct as a YAML document, with libyaml, which quotes where needed; and a
 * list of nodes as JSON. */
#include "tests/support/printing.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct buffer {
    char *text;
    size_t size;
};

static int append_cb(void *user, unsigned char *bytes, size_t size)
{
    struct buffer *buffer = user;
    buffer->text = xrealloc(buffer->text, buffer->size + size + 1);
    memcpy(buffer->text + buffer->size, bytes, size);
    buffer->size += size;
    buffer->text[buffer->size] = '\0';
    return 1;
}

/* libyaml returns 0 only when out of memory here, as field_set() accepts nothing but UTF-8. */
static int need(int node)
{
    if (!node)
        abort();
    return node;
}

/* Texts are quoted so that no reader takes the name "12" for a number. */
static int add_scalar(yaml_document_t *document, const char *text, bool quoted)
{
    return need(yaml_document_add_scalar(
        document, NULL, (const yaml_char_t *)text, (int)strlen(text),
        quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE));
}

static int add_texts(yaml_document_t *document, const struct texts *texts)
{
    int list = need(yaml_document_add_sequence(document, NULL, YAML_FLOW_SEQUENCE_STYLE));
    for (size_t i = 0; i < texts->count; i++)
        need(yaml_document_append_sequence_item(document, list,
                                                add_scalar(document, texts->items[i], true)));
    return list;
}

static int add_choices(yaml_document_t *document, const struct field *field, uint32_t set)
{
    int list = need(yaml_document_add_sequence(document, NULL, YAML_FLOW_SEQUENCE_STYLE));
    for (size_t i = 0; field->words[i]; i++)
        if (set >> i & 1)
            need(yaml_document_append_sequence_item(document, list,
                                                    add_scalar(document, field->words[i], false)));
    return list;
}

static bool is_given(const struct field *field, const void *values)
{
    if (field->kind == FIELD_SECTIONS)
        return ((const struct sections *)(const void *)((const char *)values + field->offset))
                   ->count > 0;
    if (field->kind != FIELD_SECTION) {
        char *text = field_print(field, values);
        free(text);
        return text != NULL;
    }
    for (const struct field *inner = field->fields; inner->key; inner++)
        if (is_given(inner, (const char *)values + field->offset))
            return true;
    return false;
}

static int add_section(yaml_document_t *document, const struct field *fields, const void *values);

static int add_sections(yaml_document_t *document, const struct field *field,
                        const struct sections *sections)
{
    int list = need(yaml_document_add_sequence(document, NULL, YAML_BLOCK_SEQUENCE_STYLE));
    for (size_t i = 0; i < sections->count; i++)
        need(yaml_document_append_sequence_item(
            document, list,
            add_section(document, field->fields, (const char *)sections->items + i * field->size)));
    return list;
}

static int add_value(yaml_document_t *document, const struct field *field, const void *values)
{
    const void *at = (const char *)values + field->offset;
    if (field->kind == FIELD_SECTION)
        return add_section(document, field->fields, at);
    if (field->kind == FIELD_SECTIONS)
        return add_sections(document, field, at);
    if (field->kind == FIELD_TEXTS)
        return add_texts(document, at);
    if (field->kind == FIELD_CHOICES)
        return add_choices(document, field, *(const uint32_t *)at);
    char *text = field_print(field, values);
    int node = add_scalar(document, text, field->kind == FIELD_TEXT);
    free(text);
    return node;
}

/* The first node of a document is its root, so the mapping is added before its content. */
static int add_section(yaml_document_t *document, const struct field *fields, const void *values)
{
    int section = need(yaml_document_add_mapping(document, NULL, YAML_BLOCK_MAPPING_STYLE));
    for (const struct field *field = fields; field->key; field++) {
        if (!is_given(field, values))
            continue;
        int key = add_scalar(document, field->key, false);
        int value = add_value(document, field, values);
        need(yaml_document_append_mapping_pair(document, section, key, value));
    }
    return section;
}

char *fields_print(const struct field *fields, const void *values)
{
    yaml_document_t document;
    yaml_emitter_t emitter;
    struct buffer buffer = {0};
    need(yaml_document_initialize(&document, NULL, NULL, NULL, 1, 1));
    need(yaml_emitter_initialize(&emitter));
    yaml_emitter_set_output(&emitter, append_cb, &buffer);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    add_section(&document, fields, values);
    need(yaml_emitter_dump(&emitter, &document)); /* frees the document */
    yaml_emitter_delete(&emitter);
    return buffer.text;
}

json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(nodes, hardware_report_to_json(reports[i]));
    return json_pack("{s:s, s:s, s:o}", "apiVersion", "gimbal/v1", "kind", "NodeList", "nodes",
                     nodes);
}
