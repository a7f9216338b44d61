/* lines.c - cuts what arrives in a pipe into lines. */
#include "coordinator/cli/local/lines.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Pass on the complete lines of the buffer; all of it, if it is full or `all`. */
static void pass(struct lines *lines, int all, void (*line_cb)(void *data, const char *line),
                 void *data)
{
    char *start = lines->text, *end;
    lines->text[lines->used] = '\0';
    while ((end = strchr(start, '\n'))) {
        *end = '\0';
        line_cb(data, start);
        start = end + 1;
    }
    size_t left = strlen(start);
    if (left > 0 && (all || (start == lines->text && left + 1 == sizeof lines->text))) {
        line_cb(data, start);
        left = 0;
    }
    memmove(lines->text, start, left);
    lines->used = left;
}

void lines_take(struct lines *lines, void (*line_cb)(void *data, const char *line), void *data)
{
    struct pollfd there = {.fd = lines->fd, .events = POLLIN};
    while (lines->fd >= 0 && poll(&there, 1, 0) > 0) {
        ssize_t got =
            read(lines->fd, lines->text + lines->used, sizeof lines->text - lines->used - 1);
        if (got <= 0) {
            lines_close(lines, line_cb, data);
            return;
        }
        lines->used += (size_t)got;
        pass(lines, 0, line_cb, data);
    }
}

void lines_close(struct lines *lines, void (*line_cb)(void *data, const char *line), void *data)
{
    pass(lines, 1, line_cb, data);
    if (lines->fd >= 0)
        close(lines->fd);
    lines->fd = -1;
}
