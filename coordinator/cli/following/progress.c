/* progress.c - formats the line, and decides when it is written. */
#include "coordinator/cli/following/progress.h"

#include "common/base/units.h"
#include "common/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

char *progress_format_count(char *out, size_t size, double count)
{
    const char *unit = "";
    if (count >= 999500) {
        count /= 1e6;
        unit = "M";
    } else if (count >= 999.5) {
        count /= 1e3;
        unit = "k";
    }
    snprintf(out, size, count < 9.95 && *unit ? "%.1f%s" : "%.0f%s", count, unit);
    return out;
}

static void append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
}

static void append_memory(char *out, size_t size, const struct progress_state *state)
{
    const double gib = 0x1p30;
    if (state->memory_bytes && state->memory_bytes_max)
        append(out, size, "  %.1f/%.1f GiB", (double)state->memory_bytes / gib,
               (double)state->memory_bytes_max / gib);
    else if (state->memory_bytes)
        append(out, size, "  %.1f GiB", (double)state->memory_bytes / gib);
}

char *progress_format(char *out, size_t size, const struct progress_state *state)
{
    char number[32];
    snprintf(out, size, "%s  step %llu/%llu", state->name, (unsigned long long)state->step,
             (unsigned long long)state->step_count);
    if (state->step_count)
        append(out, size, "  %.1f%%", 100.0 * (double)state->step / (double)state->step_count);
    if (!isnan(state->loss))
        append(out, size, "  loss %.3f", state->loss);
    if (!isnan(state->heldout_loss))
        append(out, size, "  held-out %.3f", state->heldout_loss);
    if (state->tokens_per_s > 0)
        append(out, size, "  %s tok/s",
               progress_format_count(number, sizeof number, state->tokens_per_s));
    append_memory(out, size, state);
    if (state->plan && *state->plan)
        append(out, size, "  %s", state->plan);
    if (state->step_time_s > 0 && state->step < state->step_count)
        append(
            out, size, "  ETA %s",
            units_print_duration(number, sizeof number,
                                 state->step_time_s * (double)(state->step_count - state->step)));
    return out;
}

void progress_open(struct progress *progress, FILE *out, bool quiet)
{
    const char *terminal = getenv("TERM"), *ci = getenv("CI");
    *progress = (struct progress){.out = out, .quiet = quiet};
    progress->live =
        isatty(fileno(out)) && !(ci && *ci) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Cut the line so that it does not wrap: a wrapped line cannot be rewritten. */
static size_t fitting_bytes(const struct progress *progress)
{
    struct winsize window;
    size_t columns = 0, i = 0;
    if (ioctl(fileno(progress->out), TIOCGWINSZ, &window) < 0 || window.ws_col == 0)
        return strlen(progress->last);
    for (; progress->last[i]; i++) {
        columns += ((unsigned char)progress->last[i] & 0xc0) != 0x80;
        if (columns >= window.ws_col)
            break;
    }
    return i;
}

static void draw(struct progress *progress)
{
    fprintf(progress->out, "\r\033[K%.*s", (int)fitting_bytes(progress), progress->last);
    fflush(progress->out);
    progress->drawn = true;
}

void progress_update(struct progress *progress, const struct progress_state *state, double now_s)
{
    char line[sizeof progress->last];
    progress_show(progress, progress_format(line, sizeof line, state), now_s);
}

void progress_show(struct progress *progress, const char *line, double now_s)
{
    if (progress->quiet || (progress->last_shown && strcmp(line, progress->last) == 0))
        return;
    snprintf(progress->last, sizeof progress->last, "%s", line);
    progress->last_shown = false;
    if (progress->live) {
        draw(progress);
        return;
    }
    if (progress->begun && now_s < progress->next_s)
        return;
    fprintf(progress->out, "%s\n", progress->last);
    progress->begun = progress->last_shown = true;
    progress->next_s = now_s + PROGRESS_LINE_S;
}

static void print_above(struct progress *progress, const char *format, va_list arguments)
{
    char *text;
    if (progress->drawn)
        fputs("\r\033[K", progress->out);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    char *clean = utf8_clean(text, strlen(text));
    fprintf(progress->out, "%s\n", clean);
    free(clean);
    free(text);
    if (progress->drawn)
        draw(progress);
    fflush(progress->out);
}

void progress_note(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    if (progress->quiet)
        return;
    va_start(arguments, format);
    print_above(progress, format, arguments);
    va_end(arguments);
}

void progress_say(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_above(progress, format, arguments);
    va_end(arguments);
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", progress->out);
    fflush(progress->out);
    progress->drawn = false;
    progress->last[0] = '\0';
}

void progress_close(struct progress *progress)
{
    if (progress->quiet || !progress->last[0])
        return;
    if (progress->drawn)
        fprintf(progress->out, "\r\033[K%s\n", progress->last);
    else if (!progress->last_shown)
        fprintf(progress->out, "%s\n", progress->last);
    progress->drawn = false;
    progress->last[0] = '\0';
    fflush(progress->out);
}
