/* log.c - writes each line with a single write(), so that lines of several processes do not mix. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const log_level_names[] = {"debug", "info", "warn", "error", NULL};

static const char *module_name = "gimbal";
static enum log_level level_least = LOG_INFO;
static bool in_sentences;

void log_open(const char *module, enum log_level least)
{
    module_name = module;
    level_least = least;
}

void log_open_sentences(enum log_level least)
{
    level_least = least;
    in_sentences = true;
}

/* Quote text as logfmt wants it: quotes and backslashes escaped, control characters as '?'. */
static void log_quote(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (*text == '"' || *text == '\\')
            out[used++] = '\\';
        out[used++] = (unsigned char)*text < ' ' ? '?' : *text;
    }
    out[used] = '\0';
}

/* Returns the length of the line, as snprintf() does. */
static int print_sentence(char *out, size_t size, enum log_level level, const char *text)
{
    static const char *const before[] = {"", "", "warning: ", "error: "};
    return snprintf(out, size, "%s%s\n", before[level], text);
}

static int print_logfmt(char *out, size_t size, enum log_level level, const char *text)
{
    char quoted[2304], stamp[32];
    struct timespec now;
    struct tm parts;
    log_quote(quoted, sizeof quoted, text);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    return snprintf(out, size, "ts=%s.%03ldZ level=%s mod=%s msg=\"%s\"\n", stamp,
                    now.tv_nsec / 1000000, log_level_names[level], module_name, quoted);
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level < level_least)
        return;
    char text[2048], line[2560];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int length = in_sentences ? print_sentence(line, sizeof line, level, text)
                              : print_logfmt(line, sizeof line, level, text);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* nobody to tell */
}
