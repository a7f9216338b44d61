/* lines.h - what an executor prints, line by line, and the last lines of it. */
#ifndef WORKER_SUPERVISOR_LINES_H
#define WORKER_SUPERVISOR_LINES_H

#include <stddef.h>

#define LINES_SIZE 1024 /* of a line, with its final NUL; a longer one is cut */
#define LINES_LAST 5    /* so many are remembered */

struct lines {
    char line[LINES_SIZE]; /* what has come of a line */
    size_t used;
    char last[LINES_LAST][LINES_SIZE];
    size_t count; /* lines so far */
};

/* A line, without its end, in UTF-8 without control characters; never empty. Lent. */
typedef void (*lines_cb)(void *data, const char *line);

/* Zeroed to begin with. */
void lines_feed(struct lines *lines, const char *bytes, size_t size, lines_cb callback, void *data);
/* Nothing more comes: what there is counts as a line. */
void lines_end(struct lines *lines, lines_cb callback, void *data);
/* The last ones, oldest first, joined by " | "; "" when there were none. Returns out. */
char *lines_last(const struct lines *lines, char *out, size_t size);

/* The level and the message of a line. One that common/base/log wrote says both; any other was
 * printed by a library or an assertion that failed: it is an error, in its own words. */
void line_read(const char *line, char level[8], char *text, size_t size);

#endif
