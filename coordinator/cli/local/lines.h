/* lines.h - reads what a child writes, line by line, without waiting for it. */
#ifndef COORDINATOR_CLI_LOCAL_LINES_H
#define COORDINATOR_CLI_LOCAL_LINES_H

#include <stddef.h>

struct lines {
    int fd;      /* owned; -1: none */
    size_t used; /* bytes of a line that has not ended yet */
    char text[4096];
};

/* Pass on each complete line that has arrived, without its newline. A line that is longer than the
 * buffer is passed on in pieces. At the end of what the child writes, the descriptor is closed. */
void lines_take(struct lines *lines, void (*line_cb)(void *data, const char *line), void *data);
/* Pass on what has no newline yet, and close the descriptor. */
void lines_close(struct lines *lines, void (*line_cb)(void *data, const char *line), void *data);

#endif
