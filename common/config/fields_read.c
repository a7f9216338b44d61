/* fields_read.c - reads the mappings of a document by their tables.
 *
 * Every key must be known, occur once, and have a value of its row's kind; every required row must
 * be present. Reading stops at the first error: one clear sentence is worth more than ten. */
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/config/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 256
#define KEYS_MAX 64

struct reader {
    const struct document *document;
    const struct field *root; /* the whole table, for saying where a misplaced key belongs */
    bool partial;             /* required rows may be missing */
    struct error *err;
};

static void join_path(char out[PATH_SIZE], const char *path, const char *key)
{
    snprintf(out, PATH_SIZE, "%s%s%.64s", path, *path ? "." : "", key);
}

/* Find a key in the sections below `fields`, and append the path of its section to `path`. NULL
 * when no section has it. */
static const struct field *find_home(const struct field *fields, const char *key, char *path)
{
    for (const struct field *field = fields; field->key; field++) {
        if (!field->fields)
            continue;
        const struct field *found = fields_find(field->fields, key);
        size_t used = strlen(path);
        snprintf(path + used, PATH_SIZE - used, "%s%s", used ? "." : "", field->key);
        if (found || (found = find_home(field->fields, key, path)))
            return found;
        path[used] = '\0';
    }
    return NULL;
}

/* Collect the keys of a table, also joined as "a, b, c"; returns how many there are. */
static size_t list_keys(const struct field *fields, const char **keys, char *joined, size_t size)
{
    size_t count = 0, used = 0;
    for (; fields[count].key && count < KEYS_MAX; count++) {
        keys[count] = fields[count].key;
        if (used < size)
            used += (size_t)snprintf(joined + used, size - used, "%s%s", count ? ", " : "",
                                     fields[count].key);
    }
    return count;
}

static int refuse_key(const struct reader *reader, const struct field *fields, const char *path,
                      const yaml_node_t *node)
{
    const char *key = (const char *)node->data.scalar.value;
    const char *keys[KEYS_MAX];
    char known[512] = "", whole[PATH_SIZE], home[PATH_SIZE] = "";
    size_t count = list_keys(fields, keys, known, sizeof known);
    join_path(whole, path, key);
    const char *nearest = text_nearest(key, keys, count);
    if (nearest)
        return document_fail(reader->document, node, reader->err,
                             "%s: unknown key; did you mean '%s'?", whole, nearest);
    if (find_home(reader->root, key, home))
        return document_fail(reader->document, node, reader->err,
                             "%s: unknown key here; it belongs in '%s'", whole, home);
    return document_fail(reader->document, node, reader->err, "%s: unknown key; known are %s",
                         whole, known);
}

static const char *kind_of_node(const yaml_node_t *node)
{
    return node->type == YAML_MAPPING_NODE    ? "a section"
           : node->type == YAML_SEQUENCE_NODE ? "a list"
                                              : "a single value";
}

static int refuse_kind(const struct reader *reader, const struct field *field, const char *path,
                       const yaml_node_t *node)
{
    char right[512];
    return document_fail(reader->document, node, reader->err, "%s: is %s: write %s", path,
                         kind_of_node(node), field_describe(field, right, sizeof right));
}

static bool is_empty(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* A number or boolean in quotes is a string. */
static bool is_quoted_number(const struct field *field, const yaml_node_t *node)
{
    return (field->kind == FIELD_INTEGER || field->kind == FIELD_REAL ||
            field->kind == FIELD_BOOLEAN || field->kind == FIELD_ANSWER) &&
           node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

typedef int set_fn(const struct field *field, const char *text, void *values, struct error *err);

static int read_scalar(const struct reader *reader, const struct field *field, const char *path,
                       const yaml_node_t *node, set_fn *set, void *values)
{
    const char *text = (const char *)node->data.scalar.value;
    char right[512];
    if (node->type != YAML_SCALAR_NODE)
        return refuse_kind(reader, field, path, node);
    if (is_empty(node))
        return document_fail(reader->document, node, reader->err, "%s: has no value: write %s",
                             path, field_describe(field, right, sizeof right));
    if (strlen(text) != node->data.scalar.length)
        return document_fail(reader->document, node, reader->err, "%s: holds a NUL character",
                             path);
    if (is_quoted_number(field, node))
        return document_fail(reader->document, node, reader->err,
                             "%s: '%.200s' is a string because of its quotes: write %s", path, text,
                             field_describe(field, right, sizeof right));
    struct error words;
    if (set(field, text, values, &words) < 0)
        return document_fail(reader->document, node, reader->err, "%s: %s", path, words.text);
    return 0;
}

/* Read a list; a single value counts as a list of one. */
static int read_list(const struct reader *reader, const struct field *field, const char *path,
                     const yaml_node_t *node, void *values)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return read_scalar(reader, field, path, node, field_append, values);
    int rc = 0;
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         rc == 0 && item < node->data.sequence.items.top; item++)
        rc = read_scalar(reader, field, path, document_node(reader->document, *item), field_append,
                         values);
    return rc;
}

static int read_section(const struct reader *reader, const struct field *fields, const char *path,
                        const yaml_node_t *node, void *values);

/* Read a list of sections; a single section counts as a list of one. */
static int read_sections(const struct reader *reader, const struct field *field, const char *path,
                         const yaml_node_t *node, struct sections *sections)
{
    const bool list = node->type == YAML_SEQUENCE_NODE;
    const yaml_node_item_t *items = list ? node->data.sequence.items.start : NULL;
    size_t count = list ? (size_t)(node->data.sequence.items.top - items) : 1;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const yaml_node_t *item = list ? document_node(reader->document, items[i]) : node;
        char whole[PATH_SIZE];
        snprintf(whole, sizeof whole, list ? "%s[%zu]" : "%s", path, i);
        if (item->type != YAML_MAPPING_NODE)
            return refuse_kind(reader, field, whole, item);
        if (i >= (size_t)field->greatest)
            return document_fail(reader->document, item, reader->err,
                                 "%s: one item too many: write at most %.0f", whole,
                                 field->greatest);
        sections->items = grow(sections->items, sections->count, &sections->capacity, field->size);
        void *values = (char *)sections->items + sections->count++ * field->size;
        fields_defaults(field->fields, values);
        rc = read_section(reader, field->fields, whole, item, values);
    }
    return rc;
}

static int read_field(const struct reader *reader, const struct field *field, const char *path,
                      const yaml_node_t *node, void *values)
{
    void *at = (char *)values + field->offset;
    switch (field->kind) {
    case FIELD_SECTION:
        if (node->type != YAML_MAPPING_NODE && !is_empty(node))
            return refuse_kind(reader, field, path, node);
        return read_section(reader, field->fields, path, node, at);
    case FIELD_SECTIONS: {
        const struct field row[] = {*field, {.key = NULL}};
        fields_clear(row, values);
        return read_sections(reader, field, path, node, at);
    }
    case FIELD_CHOICES:
        *(uint32_t *)at = 0; /* what the document says replaces the default */
        return read_list(reader, field, path, node, values);
    case FIELD_TEXTS: {
        const struct field row[] = {*field, {.key = NULL}};
        fields_clear(row, values);
        return read_list(reader, field, path, node, values);
    }
    default:
        return read_scalar(reader, field, path, node, field_set, values);
    }
}

/* Find the pair with the key of this row; a second one is an error. *found NULL: there is none. */
static int find_pair(const struct reader *reader, const struct field *field, const char *path,
                     const yaml_node_t *node, const yaml_node_pair_t **found)
{
    *found = NULL;
    if (node->type != YAML_MAPPING_NODE)
        return 0;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = document_node(reader->document, pair->key);
        if (strcmp((const char *)key->data.scalar.value, field->key) != 0)
            continue;
        if (*found) {
            const yaml_node_t *first = document_node(reader->document, (*found)->key);
            return document_fail(reader->document, key, reader->err,
                                 "%s: written twice; the first is in line %zu", path,
                                 first->start_mark.line + 1);
        }
        *found = pair;
    }
    return 0;
}

static int check_keys(const struct reader *reader, const struct field *fields, const char *path,
                      const yaml_node_t *node)
{
    if (node->type != YAML_MAPPING_NODE)
        return 0;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = document_node(reader->document, pair->key);
        if (key->type != YAML_SCALAR_NODE)
            return document_fail(reader->document, key, reader->err, "%s cannot be a key",
                                 kind_of_node(key));
        if (strlen((const char *)key->data.scalar.value) != key->data.scalar.length)
            return document_fail(reader->document, key, reader->err,
                                 "this key holds a NUL character");
        if (!fields_find(fields, (const char *)key->data.scalar.value))
            return refuse_key(reader, fields, path, key);
    }
    return 0;
}

static int read_section(const struct reader *reader, const struct field *fields, const char *path,
                        const yaml_node_t *node, void *values)
{
    int rc = check_keys(reader, fields, path, node);
    for (const struct field *field = fields; rc == 0 && field->key; field++) {
        const yaml_node_pair_t *pair;
        char whole[PATH_SIZE], right[512];
        join_path(whole, path, field->key);
        rc = find_pair(reader, field, whole, node, &pair);
        if (rc == 0 && pair)
            rc = read_field(reader, field, whole, document_node(reader->document, pair->value),
                            values);
        else if (rc == 0 && field->required && !reader->partial)
            rc = document_fail(reader->document, node, reader->err, "%s: missing: write %s", whole,
                               field_describe(field, right, sizeof right));
    }
    return rc;
}

int fields_read(const struct field *fields, const struct document *document, void *values,
                struct error *err)
{
    const struct reader reader = {.document = document, .root = fields, .err = err};
    fields_defaults(fields, values);
    return read_section(&reader, fields, "", document_root(document), values);
}

int fields_merge(const struct field *fields, const struct document *document, void *values,
                 struct error *err)
{
    const struct reader reader = {
        .document = document, .root = fields, .partial = true, .err = err};
    return read_section(&reader, fields, "", document_root(document), values);
}
