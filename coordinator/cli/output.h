/* output.h - what commands print on stdout: tables for people, JSON objects for programs; the file
 * that stdout may be instead; and the reader of it, who may go away.
 *
 * Every object has "apiVersion": "gimbal/v1" and a "kind"; sizes are bytes and times seconds. */
#ifndef COORDINATOR_CLI_OUTPUT_H
#define COORDINATOR_CLI_OUTPUT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"
#include "coordinator/resources/resources.h"

/* OUTPUT_NAME requires TAKES_NAMES, OUTPUT_SVG requires TAKES_DRAWING, OUTPUT_CSV TAKES_CSV. */
enum output {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_NAME,
    OUTPUT_JSON,
    OUTPUT_JSONL,
    OUTPUT_SVG,
    OUTPUT_CSV
};
extern const char *const output_words[]; /* ends with NULL */

/* Print an object and release it: json on several lines, jsonl on one. */
void output_print_object(enum output output, json_t *object, FILE *out);
/* Print an object given as text, verbatim if several lines are allowed. False: it is not JSON. */
bool output_print_text(enum output output, const char *text, FILE *out);
/* Print a list of objects and release it: json wraps it as {kind, member: [...]}, jsonl prints one
 * object per line. */
void output_print_list(enum output output, const char *kind, const char *member, json_t *items,
                       FILE *out);

/* Print a table given as text: its first line if headers are wanted, then up to `rows` more (0:
 * all), then how many were left out. */
void output_print_rows(const char *text, size_t rows, bool headers, FILE *out);

/* Milliseconds since 1970 as local time, "2026-11-26 09:13:07"; 0: unknown, "". Returns out. */
char *output_print_time(char *out, size_t size, uint64_t unix_ms);

struct column {
    const char *name;
    bool right; /* right-aligned, for numbers */
    bool wide;  /* only for -o wide */
};

/* A table; cells are added row by row, one for every column. */
struct table;

/* columns are lent for the table's life. */
struct table *table_create(const struct column *columns, size_t count);
void table_destroy(struct table *table);
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Columns are as wide as their widest cell; empty cells are printed as "-". OUTPUT_NAME prints the
 * first column only. */
void table_print(const struct table *table, enum output output, bool headers, FILE *out);

/* The output of a command in a file, which appears complete or not at all. */

struct outfile {
    const char *path; /* lent; NULL: stdout is not redirected */
    char *part;       /* temporary file until the output is complete */
};

/* Redirect stdout to the file. A negative errno; the message names the path. */
int outfile_begin(const char *path, struct outfile *outfile, struct error *err);
/* Move the file into place if the command has succeeded or has printed something, since the answer
 * about a job that waits or has failed is an answer too; otherwise leave the previous file. A
 * negative errno; the message names the path. */
int outfile_end(struct outfile *outfile, bool done, struct error *err);

/* Notices that the reader of the output has gone away, while the command waits for more to print.
 */

/* For use in poll(2), which then wakes up when nobody reads stdout any more. */
struct pollfd reader_poll(void);
/* EXIT_DONE as long as somebody reads stdout, as far as that poll has seen. Otherwise the exit code
 * of SIGPIPE; EXIT_IO if something could not be written. */
int reader_code(const struct pollfd *polled);

#endif
