/* document.h - one YAML document in memory, in which every value still knows its place.
 *
 * A document comes from one file (or text) of at most 1 MiB. Errors about its contents read
 * "file:line:column: sentence", lines and columns counted from 1. */
#ifndef COMMON_CONFIG_DOCUMENT_H
#define COMMON_CONFIG_DOCUMENT_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#define DOCUMENT_SIZE_MAX ((size_t)1 << 20)

struct document {
    char *name; /* what errors call it: the path, as it was given */
    yaml_document_t yaml;
};

/* Read a file. -errno when it cannot be read, -EFBIG when it is larger than DOCUMENT_SIZE_MAX,
 * -EINVAL when it is not one YAML document whose top is a mapping. */
int document_load(const char *path, struct document **out, struct error *err);
/* The same from size bytes of text, called name in errors; neither is kept. */
int document_parse(const char *text, size_t size, const char *name, struct document **out,
                   struct error *err);
/* NULL is fine. */
void document_destroy(struct document *document);

/* Lend nodes, for as long as the document lives. */
yaml_node_t *document_root(const struct document *document);
yaml_node_t *document_node(const struct document *document, int index);
/* The value at a path of keys such as "train.steps" or "nodes[1].name"; NULL when it is not
 * written. */
yaml_node_t *document_find(const struct document *document, const char *path);

/* Write "file:line:column: ..." for a node and return -EINVAL. */
int document_fail(const struct document *document, const yaml_node_t *node, struct error *err,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for a path, with "path: " before the sentence. The place is the value's, or that of
 * the innermost section around it that is written. */
int document_fail_at(const struct document *document, const char *path, struct error *err,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
