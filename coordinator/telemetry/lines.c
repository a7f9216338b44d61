/* lines.c - an array whose front is dropped lazily, so that lines can be lent in one piece. */
#include "coordinator/telemetry/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

struct lines {
    size_t count_max, bytes_max;
    struct log_line *items;
    size_t first, end, capacity; /* items[first, end) are kept */
    size_t bytes;
    uint64_t revision;
};

struct lines *lines_create(size_t count_max, size_t bytes_max)
{
    struct lines *lines = xcalloc(1, sizeof *lines);
    lines->count_max = count_max;
    lines->bytes_max = bytes_max;
    return lines;
}

void lines_destroy(struct lines *lines)
{
    if (!lines)
        return;
    for (size_t i = lines->first; i < lines->end; i++)
        free(lines->items[i].text);
    free(lines->items);
    free(lines);
}

/* Makes text safe for terminals and JSON. */
static char *clean(const char *text)
{
    size_t whole = strlen(text);
    if (whole && text[whole - 1] == '\n')
        whole--;
    size_t length = whole < LINES_TEXT_SIZE ? whole : LINES_TEXT_SIZE - 1;
    char *copy = xcalloc(length + 1, 1);
    for (size_t i = 0; i < length; i++)
        copy[i] = (text[i] < ' ' && text[i] != '\t') || text[i] > '~' ? '?' : text[i];
    if (length < whole)
        memcpy(copy + length - 3, "...", 4);
    return copy;
}

static void drop_first(struct lines *lines)
{
    struct log_line *line = &lines->items[lines->first++];
    lines->bytes -= strlen(line->text);
    free(line->text);
}

/* Move the lines to the front once half of the array is dropped lines, so rarely. */
static void close_up(struct lines *lines)
{
    if (lines->first < lines->capacity / 2 || lines->first == 0)
        return;
    memmove(lines->items, lines->items + lines->first,
            (lines->end - lines->first) * sizeof *lines->items);
    lines->end -= lines->first;
    lines->first = 0;
}

const char *lines_level(const char *word)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i], word) == 0)
            return levels[i];
    return "";
}

uint64_t lines_add(struct lines *lines, const struct log_line *from)
{
    close_up(lines);
    lines->items = grow(lines->items, lines->end, &lines->capacity, sizeof *lines->items);
    struct log_line *line = &lines->items[lines->end++];
    *line = *from;
    line->revision = ++lines->revision;
    line->level = lines_level(from->level ? from->level : "");
    line->text = clean(from->text);
    lines->bytes += strlen(line->text);
    while (lines->end - lines->first > 1 &&
           (lines->end - lines->first > lines->count_max || lines->bytes > lines->bytes_max))
        drop_first(lines);
    return lines->revision;
}

uint64_t lines_first(const struct lines *lines)
{
    return lines->revision - (lines->end - lines->first);
}

int lines_after(const struct lines *lines, uint64_t revision, const struct log_line **out,
                size_t *count, struct error *err)
{
    uint64_t dropped = lines_first(lines);
    if (revision < dropped || revision > lines->revision)
        return error_set(err, -ERANGE, "lines after %llu: there are those from %llu to %llu",
                         (unsigned long long)revision, (unsigned long long)dropped + 1,
                         (unsigned long long)lines->revision);
    *count = (size_t)(lines->revision - revision);
    *out = *count ? &lines->items[lines->end - *count] : NULL;
    return 0;
}
