/* scalars.c - the same figures to both kinds of files. */
#include "worker/scalars/scalars.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "worker/scalars/events.h"
#include "worker/scalars/lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FLUSH_S 1.0

struct scalars {
    struct scalars_config config;
    char *plan;
    struct events *events; /* NULL: none are wanted, or they failed */
    struct jsonl *lines;
    uint64_t began; /* the step behind which the epoch began, */
    bool evaluated; /* whose evaluation is among the lines */
    double flushed_s;
};

struct scalars *scalars_create(const struct scalars_config *config)
{
    if (!config->log->tensorboard && !config->log->jsonl)
        return NULL;
    struct scalars *scalars = xcalloc(1, sizeof *scalars);
    scalars->config = *config;
    scalars->plan = xstrdup(config->plan);
    return scalars;
}

static void scalars_fail_events(struct scalars *scalars, const struct error *err)
{
    log_line(LOG_WARN, "log.tensorboard: nothing more is written: %s", err->text);
    events_close(scalars->events);
    scalars->events = NULL;
}

static void scalars_fail_lines(struct scalars *scalars, const struct error *err)
{
    log_line(LOG_WARN, "log.jsonl: nothing more is written: %s", err->text);
    jsonl_close(scalars->lines);
    scalars->lines = NULL;
}

static void scalars_flush(struct scalars *scalars)
{
    struct error err;
    if (scalars->events && events_flush(scalars->events, &err) < 0)
        scalars_fail_events(scalars, &err);
    if (scalars->lines && jsonl_flush(scalars->lines, &err) < 0)
        scalars_fail_lines(scalars, &err);
    scalars->flushed_s = clock_s();
}

void scalars_destroy(struct scalars *scalars)
{
    if (!scalars)
        return;
    scalars_flush(scalars);
    events_close(scalars->events);
    jsonl_close(scalars->lines);
    free(scalars->plan);
    free(scalars);
}

/* A line with what all lines have. */
static json_t *scalars_line(const struct scalars *scalars, uint64_t step)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:f}", "name", scalars->config.name, "job",
                     scalars->config.job, "epoch", (json_int_t)scalars->config.epoch, "step",
                     (json_int_t)step, "unix_s", 1e-3 * (double)clock_unix_ms());
}

/* null where JSON has no such number. */
static void line_set(json_t *line, const char *key, double value)
{
    json_object_set_new(line, key, isfinite(value) ? json_real(value) : json_null());
}

static void scalars_put_text(struct scalars *scalars, uint64_t step, const char *tag,
                             const char *text)
{
    if (scalars->events)
        events_put_text(scalars->events, step, tag, text);
    if (scalars->lines) {
        json_t *line = scalars_line(scalars, step);
        json_object_set_new(line, tag, json_string(text));
        jsonl_put(scalars->lines, line);
    }
    scalars_flush(scalars);
}

void scalars_begin(struct scalars *scalars, uint64_t step, const char *source)
{
    struct error err;
    if (!scalars)
        return;
    const struct scalars_config *config = &scalars->config;
    const struct job_log *log = config->log;
    scalars->began = step;
    if (log->tensorboard) {
        char *folder = xasprintf("%s/%s-%s", log->tensorboard, config->name, config->job);
        if (events_open(folder, config->epoch, step + 1, &scalars->events, &err) < 0)
            scalars_fail_events(scalars, &err);
        free(folder);
    }
    if (log->jsonl && jsonl_open(log->jsonl, config->name, config->job, step, &scalars->evaluated,
                                 &scalars->lines, &err) < 0)
        scalars_fail_lines(scalars, &err);
    char *text = xasprintf("%s behind step %" PRIu64 ", from %s: %s",
                           config->epoch > 1 ? "goes on" : "begins", step, source, scalars->plan);
    scalars_put_text(scalars, step, "plan", text);
    free(text);
}

void scalars_step(struct scalars *scalars, uint64_t step, double loss, double gradient_norm,
                  double seconds)
{
    if (!scalars)
        return;
    const struct scalars_config *config = &scalars->config;
    double predicted_s = config->predicted_s > 0 ? config->predicted_s : (double)NAN;
    const struct scalar values[] = {
        {"loss", loss},
        {"gradient_norm", gradient_norm},
        {"lr", optimizer_rate(&config->optimizer, step - 1)},
        {"tokens_per_s", (double)config->tokens / seconds},
        {"step_time_s/measured", seconds},
        {"step_time_s/predicted", predicted_s},
    };
    size_t count = sizeof values / sizeof *values;
    if (scalars->events)
        events_put_scalars(scalars->events, step, values, count);
    if (scalars->lines) {
        json_t *line = scalars_line(scalars, step);
        for (size_t i = 0; i < count; i++)
            line_set(line, values[i].tag, values[i].value);
        jsonl_put(scalars->lines, line);
    }
    if (clock_s() - scalars->flushed_s > FLUSH_S)
        scalars_flush(scalars);
}

void scalars_evaluation(struct scalars *scalars, uint64_t step, double loss)
{
    const struct scalar value = {"held_out_loss", loss};
    if (!scalars)
        return;
    if (scalars->events)
        events_put_scalars(scalars->events, step, &value, 1);
    /* An epoch repeats the evaluation of the step behind which it begins. */
    if (scalars->lines && !(scalars->evaluated && step == scalars->began)) {
        json_t *line = scalars_line(scalars, step);
        line_set(line, value.tag, loss);
        jsonl_put(scalars->lines, line);
    }
    scalars_flush(scalars);
}

void scalars_sample(struct scalars *scalars, uint64_t step, const void *text, size_t size)
{
    if (!scalars)
        return;
    char *clean = text_clean(text, size);
    scalars_put_text(scalars, step, "sample", clean);
    free(clean);
}
