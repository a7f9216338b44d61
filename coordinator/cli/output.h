/* output.h - what a command prints on stdout: tables for people, JSON objects for programs.
 *
 * Every object has "apiVersion": "gimbal/v1" and a "kind"; sizes are bytes and times seconds. */
#ifndef COORDINATOR_CLI_OUTPUT_H
#define COORDINATOR_CLI_OUTPUT_H

#include "coordinator/resources/resources.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Names are for commands that take TAKES_NAMES, a drawing for those that take TAKES_DRAWING. */
enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_NAME, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_SVG };
extern const char *const output_words[]; /* ended by NULL */

/* Print and release: json over several lines, jsonl on one. */
void output_print_object(enum output output, json_t *object, FILE *out);
/* Print an object that came as text, as it came where it may have several lines. False: no JSON. */
bool output_print_text(enum output output, const char *text, FILE *out);
/* Print and release a list of objects: json wraps them as {kind, member: [...]}, jsonl prints
 * each on a line. */
void output_print_list(enum output output, const char *kind, const char *member, json_t *items,
                       FILE *out);

/* A table that came as text: its first line, if headers are wanted, and `rows` more (0: all), then
 * how many were left out. */
void output_print_rows(const char *text, size_t rows, bool headers, FILE *out);

struct column {
    const char *name;
    bool right; /* numbers */
    bool wide;  /* only with -o wide */
};

/* Cells are added row by row, one for every column. */
struct table;

/* columns: lent for the table's life. */
struct table *table_create(const struct column *columns, size_t count);
void table_destroy(struct table *table);
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Columns are as wide as their widest cell; empty cells are printed as "-". Of OUTPUT_NAME the
 * first column alone. */
void table_print(const struct table *table, enum output output, bool headers, FILE *out);

#endif
