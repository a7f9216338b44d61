/* lines.h - splits an executor's output into lines, and remembers the last few. */
#ifndef WORKER_NODE_LINES_H
#define WORKER_NODE_LINES_H

#include <stddef.h>

#define LINES_SIZE 1024 /* of a line with its NUL; a longer one is cut */
#define LINES_LAST 5    /* lines that are remembered */

struct lines {
    char line[LINES_SIZE]; /* the line that is not complete yet */
    size_t used;
    char last[LINES_LAST][LINES_SIZE];
    size_t count; /* of all complete lines so far */
};

/* Called with each line, without its newline: valid UTF-8 without control characters, never empty.
 * Lent. */
typedef void (*lines_cb)(void *data, const char *line);

/* Take more output. `lines` must be zeroed before the first call. */
void lines_feed(struct lines *lines, const char *bytes, size_t size, lines_cb callback, void *data);
/* The output has ended; an incomplete line counts as one. */
void lines_end(struct lines *lines, lines_cb callback, void *data);
/* What the last lines say about an end: the messages of warnings and errors among them, oldest
 * first, joined by " | " and cut to fit, as UTF-8 still; "" if there are none. Returns out. */
char *lines_last(const struct lines *lines, char *out, size_t size);

/* Split a line into level and message. common/base/log writes both into its lines. Any other line
 * was printed by a library or a failed assertion: its level is "error", and its message the whole
 * line. */
void line_read(const char *line, char level[8], char *text, size_t size);

#endif
