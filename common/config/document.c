/* document.c - parses YAML with libyaml's document interface, which keeps the marks (line and
 * column) that errors need.
 *
 * Aliases become shared nodes, never copies, so a small file cannot grow in memory. A node may
 * contain itself; readers that follow a table of fields are bounded by the depth of the table.
 * libyaml's time grows with the square of the depth and of the number of anchors, so both are
 * limited: a daemon reads files that others write. */
#include "common/config/document.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 32
#define ANCHORS_MAX 100

/* Line and column of a byte of the text, for errors that libyaml gives no mark for. */
static yaml_mark_t find_mark(const char *text, size_t offset)
{
    yaml_mark_t mark = {.index = offset};
    for (size_t i = 0; i < offset; i++) {
        mark.column++;
        if (text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

/* Is there a tab at this mark? Columns count UTF-8 characters. */
static bool is_tab(const char *text, size_t size, const yaml_mark_t *mark)
{
    const char *at = text, *end = text + size;
    for (size_t line = 0; line < mark->line && at; line++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        at = feed ? feed + 1 : NULL;
    }
    for (size_t column = 0; at && at < end && column < mark->column; column++) {
        do
            at++;
        while (at < end && ((unsigned char)*at & 0xc0) == 0x80);
    }
    return at && at < end && *at == '\t';
}

static int fail_syntax(const yaml_parser_t *parser, const char *text, size_t size, const char *name,
                       struct error *err)
{
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR)
        mark = find_mark(text, parser->problem_offset < size ? parser->problem_offset : size);
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    if (is_tab(text, size, &mark))
        problem = "there is a tab here; write spaces";
    if (parser->context)
        return error_set(err, -EINVAL, "%s:%zu:%zu: not YAML: %s (%s)", name, mark.line + 1,
                         mark.column + 1, problem, parser->context);
    return error_set(err, -EINVAL, "%s:%zu:%zu: not YAML: %s", name, mark.line + 1, mark.column + 1,
                     problem);
}

/* Track depth and anchors through one event. -EINVAL above a limit. */
static int count_event(const yaml_event_t *event, const char *name, int *depth, int *anchors,
                       struct error *err)
{
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    bool section = event->type == YAML_MAPPING_START_EVENT;
    const yaml_mark_t *mark = &event->start_mark;
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
        --*depth;
    if ((list || section) && ++*depth > DEPTH_MAX)
        return error_set(err, -EINVAL,
                         "%s:%zu:%zu: lists and sections stand in each other more than %d deep",
                         name, mark->line + 1, mark->column + 1, DEPTH_MAX);
    if ((list && event->data.sequence_start.anchor) ||
        (section && event->data.mapping_start.anchor) ||
        (event->type == YAML_SCALAR_EVENT && event->data.scalar.anchor))
        ++*anchors;
    if (*anchors > ANCHORS_MAX)
        return error_set(err, -EINVAL, "%s:%zu:%zu: there are more than %d anchors", name,
                         mark->line + 1, mark->column + 1, ANCHORS_MAX);
    return 0;
}

/* Check depth and anchors event by event, before anything is built. Syntax errors end this
 * silently: building the document finds them again and reports them. */
static int check_shape(const char *text, size_t size, const char *name, struct error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, -ENOMEM, "%s: out of memory for the YAML parser", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    int rc = 0, depth = 0, anchors = 0;
    yaml_event_t event;
    for (bool over = false; !over && rc == 0 && yaml_parser_parse(&parser, &event);) {
        over = event.type == YAML_STREAM_END_EVENT;
        rc = count_event(&event, name, &depth, &anchors, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

/* Refuse a file in which anything follows the first document. */
static int check_end(yaml_parser_t *parser, const char *text, size_t size,
                     const struct document *document, struct error *err)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second))
        return fail_syntax(parser, text, size, document->name, err);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    int rc = 0;
    if (root)
        rc = document_fail(document, root, err,
                           "a second document begins here; write one document per file");
    yaml_document_delete(&second);
    return rc;
}

int document_parse(const char *text, size_t size, const char *name, struct document **out,
                   struct error *err)
{
    int rc = check_shape(text, size, name, err);
    if (rc < 0)
        return rc;
    struct document *document = xcalloc(1, sizeof *document);
    document->name = xstrdup(name);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        document_destroy(document);
        return error_set(err, -ENOMEM, "%s: out of memory for the YAML parser", name);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);

    const yaml_node_t *root = NULL;
    if (!yaml_parser_load(&parser, &document->yaml))
        rc = fail_syntax(&parser, text, size, name, err);
    else if (!(root = document_root(document)))
        rc = error_set(err, -EINVAL, "%s:1:1: the document is empty; write 'key: value' lines",
                       name);
    else if (root->type != YAML_MAPPING_NODE)
        rc = document_fail(document, root, err, "not a mapping; write 'key: value' lines");
    else
        rc = check_end(&parser, text, size, document, err);
    yaml_parser_delete(&parser);

    if (rc < 0) {
        document_destroy(document);
        return rc;
    }
    *out = document;
    return 0;
}

int document_load(const char *path, struct document **out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    int rc = file_read_all(fd, DOCUMENT_SIZE_MAX, &text, &size);
    close(fd);
    if (rc == -EFBIG)
        return error_set(err, rc, "'%s' is larger than %zu bytes; that is no configuration file",
                         path, DOCUMENT_SIZE_MAX);
    if (rc < 0)
        return error_set(err, rc, "cannot read '%s': %s", path, strerror(-rc));
    rc = document_parse(text, size, path, out, err);
    free(text);
    return rc;
}

void document_destroy(struct document *document)
{
    if (!document)
        return;
    yaml_document_delete(&document->yaml);
    free(document->name);
    free(document);
}

/* libyaml's look-ups change nothing, but do not take const pointers. */
yaml_node_t *document_root(const struct document *document)
{
    return yaml_document_get_root_node((yaml_document_t *)&document->yaml);
}

yaml_node_t *document_node(const struct document *document, int index)
{
    return yaml_document_get_node((yaml_document_t *)&document->yaml, index);
}

static yaml_node_t *find_key(const struct document *document, const yaml_node_t *node,
                             const char *key, size_t length)
{
    if (node->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = document_node(document, pair->key);
        if (name->type == YAML_SCALAR_NODE && name->data.scalar.length == length &&
            memcmp(name->data.scalar.value, key, length) == 0)
            return document_node(document, pair->value);
    }
    return NULL;
}

/* The list item that an index such as "[3]" names; *length is the length of the index. */
static yaml_node_t *find_item(const struct document *document, const yaml_node_t *node,
                              const char *text, size_t *length)
{
    char *end;
    unsigned long index = strtoul(text + 1, &end, 10);
    *length = (size_t)(end - text) + (*end == ']');
    if (node->type != YAML_SEQUENCE_NODE ||
        index >= (size_t)(node->data.sequence.items.top - node->data.sequence.items.start))
        return NULL;
    return document_node(document, node->data.sequence.items.start[index]);
}

/* The node of the longest part of the path that the document has; *whole: is it all of the path? */
static yaml_node_t *document_follow(const struct document *document, const char *path, bool *whole)
{
    yaml_node_t *node = document_root(document);
    for (const char *key = path; *key;) {
        size_t length = strcspn(key, ".[");
        yaml_node_t *next = *key == '[' ? find_item(document, node, key, &length)
                                        : find_key(document, node, key, length);
        if (!next) {
            *whole = false;
            return node;
        }
        node = next;
        key += length + (key[length] == '.');
    }
    *whole = true;
    return node;
}

yaml_node_t *document_find(const struct document *document, const char *path)
{
    bool whole;
    yaml_node_t *node = document_follow(document, path, &whole);
    return whole ? node : NULL;
}

static int document_fail_node(const struct document *document, const yaml_node_t *node,
                              struct error *err, const char *words)
{
    return error_set(err, -EINVAL, "%s:%zu:%zu: %s", document->name, node->start_mark.line + 1,
                     node->start_mark.column + 1, words);
}

int document_fail(const struct document *document, const yaml_node_t *node, struct error *err,
                  const char *format, ...)
{
    char words[ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return document_fail_node(document, node, err, words);
}

int document_fail_at(const struct document *document, const char *path, struct error *err,
                     const char *format, ...)
{
    char words[ERROR_SIZE];
    int length = snprintf(words, sizeof words, "%s: ", path);
    size_t used = (size_t)length < sizeof words ? (size_t)length : sizeof words - 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words + used, sizeof words - used, format, arguments);
    va_end(arguments);
    bool whole;
    return document_fail_node(document, document_follow(document, path, &whole), err, words);
}
