/* lines.h - the newest log lines of one job, numbered, for `gimbal logs`.
 *
 * A reader asks for what came after the revision that it has seen. Lines beyond the limits are
 * dropped, the oldest first; a reader that wants dropped ones is told, and never skips silently. */
#ifndef COORDINATOR_TELEMETRY_LINES_H
#define COORDINATOR_TELEMETRY_LINES_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define LINES_TEXT_SIZE 4096 /* of a line, with its final NUL; longer ones end in "..." */
#define LINES_NO_RANK (-1)   /* a line of the coordinator's own */

struct log_line {
    uint64_t revision; /* from 1, without gaps */
    int rank;
    uint64_t epoch; /* 0: of none */
    uint64_t time_ms;
    const char *level; /* a word of lines_level(); NULL, where one is added, is "" */
    char *text;        /* printable ASCII and tabs; anything else was made '?' */
};

struct lines;

/* At most so many lines, and so many bytes of text; the newest line is always kept. */
struct lines *lines_create(size_t count_max, size_t bytes_max);
void lines_destroy(struct lines *lines);

/* "debug", "info", "warn" or "error", for good; "" for any other word. */
const char *lines_level(const char *word);

/* Returns the line's revision, whatever *from says of it; its text is copied. A final newline is
 * dropped. */
uint64_t lines_add(struct lines *lines, const struct log_line *from);

/* The revision of the newest line; 0 before the first. */
uint64_t lines_revision(const struct lines *lines);

/* What to ask for to get all lines that are kept. */
uint64_t lines_first(const struct lines *lines);

/* The lines after a revision, oldest first, lent until the next is added; 0 is from the start.
 * -ERANGE: some of them were dropped, or the revision is yet to come; the text says from where
 * there are lines. */
int lines_after(const struct lines *lines, uint64_t revision, const struct log_line **out,
                size_t *count, struct error *err);

#endif
