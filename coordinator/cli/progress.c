/* progress.c - formats the line, and decides when it is written; beside a search a thread does. */
#include "coordinator/cli/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"

static void progress_append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void progress_append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
}

static void progress_append_memory(char *out, size_t size, const struct progress_state *state)
{
    const double gib = 0x1p30;
    if (state->memory_bytes && state->memory_bytes_max)
        progress_append(out, size, "  %.1f/%.1f GiB", (double)state->memory_bytes / gib,
                        (double)state->memory_bytes_max / gib);
    else if (state->memory_bytes)
        progress_append(out, size, "  %.1f GiB", (double)state->memory_bytes / gib);
}

char *progress_format(char *out, size_t size, const struct progress_state *state)
{
    char number[32];
    snprintf(out, size, "%s  step %llu/%llu", state->name, (unsigned long long)state->step,
             (unsigned long long)state->step_count);
    if (state->step_count)
        progress_append(out, size, "  %.1f%%",
                        100.0 * (double)state->step / (double)state->step_count);
    if (!isnan(state->loss))
        progress_append(out, size, "  loss %.3f", state->loss);
    if (!isnan(state->heldout_loss))
        progress_append(out, size, "  held-out %.3f", state->heldout_loss);
    if (state->tokens_per_s > 0)
        progress_append(out, size, "  %s tok/s",
                        units_print_count(number, sizeof number, state->tokens_per_s));
    progress_append_memory(out, size, state);
    if (state->plan && *state->plan)
        progress_append(out, size, "  %s", state->plan);
    if (state->step_time_s > 0 && state->step < state->step_count)
        progress_append(
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
static size_t progress_fitting_bytes(const struct progress *progress)
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

static void progress_draw(struct progress *progress)
{
    fprintf(progress->out, "\r\033[K%.*s", (int)progress_fitting_bytes(progress), progress->last);
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
        progress_draw(progress);
        return;
    }
    if (progress->begun && now_s < progress->next_s)
        return;
    fprintf(progress->out, "%s\n", progress->last);
    progress->begun = progress->last_shown = true;
    progress->next_s = now_s + PROGRESS_LINE_S;
}

static void progress_print_above(struct progress *progress, const char *format, va_list arguments)
{
    char *text;
    if (progress->drawn)
        fputs("\r\033[K", progress->out);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    char *clean = text_clean(text, strlen(text));
    fprintf(progress->out, "%s\n", clean);
    free(clean);
    free(text);
    if (progress->drawn)
        progress_draw(progress);
    fflush(progress->out);
}

void progress_note(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    if (progress->quiet)
        return;
    va_start(arguments, format);
    progress_print_above(progress, format, arguments);
    va_end(arguments);
}

void progress_say(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    progress_print_above(progress, format, arguments);
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

#define FIRST_NS 2000000000L /* nothing is shown of searches that end sooner */
#define AGAIN_NS 500000000L

struct searching {
    struct planner_progress *search;
    struct progress progress;
    double begin_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
};

/* As in "searching for a plan: 12 s, 43k programs priced, a step of 6.81 s so far". */
static void searching_show(struct searching *searching)
{
    char line[160], count[16], step[48] = "", seconds[32];
    double now_s = clock_s();
    double best_s = atomic_load_explicit(&searching->search->best_s, memory_order_relaxed);
    size_t work = atomic_load_explicit(&searching->search->work, memory_order_relaxed);
    if (best_s > 0)
        snprintf(step, sizeof step, ", a step of %s so far",
                 units_print_seconds(seconds, sizeof seconds, best_s));
    snprintf(line, sizeof line, "searching for a plan: %.0f s, %s programs priced%s",
             now_s - searching->begin_s, units_print_count(count, sizeof count, (double)work),
             step);
    progress_show(&searching->progress, line, now_s);
}

/* Returns true once the search is over, false after wait_ns. */
static bool searching_await_end(struct searching *searching, long wait_ns)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&searching->lock);
    while (!searching->over && rc == 0)
        rc = pthread_cond_timedwait(&searching->changed, &searching->lock, &until);
    bool over = searching->over;
    pthread_mutex_unlock(&searching->lock);
    return over;
}

static void *searching_run(void *context)
{
    struct searching *searching = context;
    for (long wait_ns = FIRST_NS; !searching_await_end(searching, wait_ns); wait_ns = AGAIN_NS)
        searching_show(searching);
    return NULL;
}

static void searching_finish(struct searching *searching)
{
    pthread_cond_destroy(&searching->changed);
    pthread_mutex_destroy(&searching->lock);
    free(searching);
}

struct searching *searching_begin(struct planner_progress *progress)
{
    struct searching *searching = xcalloc(1, sizeof *searching);
    pthread_condattr_t attributes;
    searching->search = progress;
    searching->begin_s = clock_s();
    progress_open(&searching->progress, stderr, false);
    pthread_mutex_init(&searching->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&searching->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&searching->thread, NULL, searching_run, searching) == 0)
        return searching;
    searching_finish(searching);
    return NULL;
}

void searching_end(struct searching *searching)
{
    if (!searching)
        return;
    pthread_mutex_lock(&searching->lock);
    searching->over = true;
    pthread_cond_signal(&searching->changed);
    pthread_mutex_unlock(&searching->lock);
    pthread_join(searching->thread, NULL);
    progress_clear(&searching->progress);
    searching_finish(searching);
}
