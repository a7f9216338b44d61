/* lines.c - splits output into lines, and parses those in logfmt. */
#include "worker/node/lines.h"

#include "common/base/text.h"
#include "common/message/message.h"

#include <stdio.h>
#include <string.h>

static void lines_finish(struct lines *lines, lines_cb callback, void *data)
{
    if (lines->used == 0)
        return;
    lines->line[lines->used] = '\0';
    lines->used = 0;
    text_mend(lines->line);
    memcpy(lines->last[lines->count++ % LINES_LAST], lines->line, sizeof lines->line);
    callback(data, lines->line);
}

void lines_feed(struct lines *lines, const char *bytes, size_t size, lines_cb callback, void *data)
{
    for (size_t i = 0; i < size; i++) {
        char c = bytes[i];
        if (c == '\n')
            lines_finish(lines, callback, data);
        else if (lines->used < sizeof lines->line - 1)
            lines->line[lines->used++] = (unsigned char)c < ' ' ? '?' : c;
    }
}

void lines_end(struct lines *lines, lines_cb callback, void *data)
{
    lines_finish(lines, callback, data);
}

/* Copy a quoted value, given from behind its opening quote, without its escapes. */
static void unquote(const char *quoted, char *text, size_t size)
{
    size_t used = 0;
    for (; *quoted && *quoted != '"' && used + 1 < size; quoted++) {
        if (*quoted == '\\' && quoted[1])
            quoted++;
        text[used++] = *quoted;
    }
    text[used] = '\0';
}

void line_read(const char *line, char level[8], char *text, size_t size)
{
    static const char level_key[] = " level=", message_key[] = " msg=\"";
    const char *level_at = strstr(line, level_key), *message = strstr(line, message_key);
    if (strncmp(line, "ts=", 3) != 0 || !level_at || !message) {
        strcpy(level, "error");
        snprintf(text, size, "%s", line);
        return;
    }
    level_at += strlen(level_key);
    snprintf(level, 8, "%.*s", (int)strcspn(level_at, " "), level_at);
    text_tame(level);
    unquote(message + strlen(message_key), text, size);
}

char *lines_last(const struct lines *lines, char *out, size_t size)
{
    size_t first = lines->count > LINES_LAST ? lines->count - LINES_LAST : 0, used = 0;
    out[0] = '\0';
    for (size_t i = first; i < lines->count && used < size; i++) {
        char level[8], text[LINES_SIZE];
        line_read(lines->last[i % LINES_LAST], level, text, sizeof text);
        if (strcmp(level, "info") != 0 && strcmp(level, "debug") != 0)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? " | " : "", text);
    }
    text_tame(out);
    return out;
}
