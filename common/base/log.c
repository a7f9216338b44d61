/* log.c - writes each line with a single write(), so that lines of several processes do not mix. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *module_name = "gimbal";
static enum log_level level_least = LOG_INFO;

void log_open(const char *module, enum log_level least)
{
    module_name = module;
    level_least = least;
}

/* Quote text as logfmt wants it: quotes and backslashes escaped, control characters as '?'. */
static void quote(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (*text == '"' || *text == '\\')
            out[used++] = '\\';
        out[used++] = (unsigned char)*text < ' ' ? '?' : *text;
    }
    out[used] = '\0';
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if (level < level_least)
        return;
    char text[2048], quoted[2304], line[2560], stamp[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    quote(quoted, sizeof quoted, text);

    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    int length = snprintf(line, sizeof line, "ts=%s.%03ldZ level=%s mod=%s msg=\"%s\"\n", stamp,
                          now.tv_nsec / 1000000, names[level], module_name, quoted);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* nobody to tell */
}
