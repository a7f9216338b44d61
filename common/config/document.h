/* document.h - a YAML document in memory, in which every value knows its place in the file.
 *
 * A document comes from one file or text of at most 1 MiB. Errors about its content have the form
 * "file:line:column: sentence", with lines and columns counted from 1. */
#ifndef COMMON_CONFIG_DOCUMENT_H
#define COMMON_CONFIG_DOCUMENT_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#define DOCUMENT_SIZE_MAX ((size_t)1 << 20)

struct document {
    char *name; /* what errors call it: the path as given */
    yaml_document_t yaml;
};

/* Read a file. A negative errno when it cannot be read, -EFBIG when it is larger than
 * DOCUMENT_SIZE_MAX, -EINVAL when it is not a single YAML document with a mapping at the top. */
int document_load(const char *path, struct document **out, struct error *err);
/* The same from `size` bytes of text; errors call it `name`. Neither is kept. */
int document_parse(const char *text, size_t size, const char *name, struct document **out,
                   struct error *err);
/* Accepts NULL. */
void document_destroy(struct document *document);

/* The top mapping. This and the nodes below are borrowed from the document. */
yaml_node_t *document_root(const struct document *document);
/* The node with this index of libyaml. */
yaml_node_t *document_node(const struct document *document, int index);
/* The value at a path such as "train.steps" or "nodes[1].name"; NULL when the document has none. */
yaml_node_t *document_find(const struct document *document, const char *path);

/* Set the error "file:line:column: ..." with the place of a node, and return -EINVAL. */
int document_fail(const struct document *document, const yaml_node_t *node, struct error *err,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for a path, with "path: " before the sentence. The place is that of the value, or of the
 * innermost section around it that the document has. */
int document_fail_at(const struct document *document, const char *path, struct error *err,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
