/* lines.h - the newest log lines of one job, numbered, for `gimbal logs`.
 *
 * A reader asks for the lines after the revision it has seen. Lines beyond the limits are dropped,
 * oldest first; a reader that asks for dropped ones is told so and never skips lines silently. */
#ifndef COORDINATOR_TELEMETRY_LINES_H
#define COORDINATOR_TELEMETRY_LINES_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define LINES_TEXT_SIZE 4096 /* of a line, including the final NUL; longer ones end in "..." */
#define LINES_NO_RANK (-1)   /* a line of the coordinator itself */

struct log_line {
    uint64_t revision; /* from 1, without gaps */
    int rank;
    uint64_t epoch; /* 0: none */
    uint64_t time_ms;
    const char *level; /* a word returned by lines_level(); when adding, NULL means "" */
    char *text;        /* printable ASCII and tabs; other bytes were replaced by '?' */
};

struct lines;

/* Limits on the number of lines and on the bytes of their texts; the newest line is always kept. */
struct lines *lines_create(size_t count_max, size_t bytes_max);
void lines_destroy(struct lines *lines);

/* "debug", "info", "warn" or "error" as a constant string; "" for any other word. */
const char *lines_level(const char *word);

/* Add a line; its text is copied without a final newline. Returns the revision assigned to it. */
uint64_t lines_add(struct lines *lines, const struct log_line *from);

/* The revision to ask for in order to get all lines that are kept. */
uint64_t lines_first(const struct lines *lines);

/* The lines after a revision, oldest first, lent until the next one is added; 0 means from the
 * start. -ERANGE: some of them were dropped, or the revision does not exist yet; the message tells
 * which lines there are. */
int lines_after(const struct lines *lines, uint64_t revision, const struct log_line **out,
                size_t *count, struct error *err);

#endif
