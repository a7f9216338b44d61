/* telemetry.c - one record per job that has reported; few jobs run at a time, so a plain array. Of
 * the lines of a log the front is dropped lazily, so that they can be lent in one piece. */
#include "coordinator/telemetry/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
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
static char *line_clean(const char *text)
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

static void lines_drop_first(struct lines *lines)
{
    struct log_line *line = &lines->items[lines->first++];
    lines->bytes -= strlen(line->text);
    free(line->text);
}

/* Move the lines to the front once half of the array is dropped lines, so rarely. */
static void lines_close_up(struct lines *lines)
{
    if (lines->first < lines->capacity / 2 || lines->first == 0)
        return;
    memmove(lines->items, lines->items + lines->first,
            (lines->end - lines->first) * sizeof *lines->items);
    lines->end -= lines->first;
    lines->first = 0;
}

/* A constant string; "" for any other word. */
static const char *lines_level(const char *word)
{
    for (size_t i = 0; log_level_names[i]; i++)
        if (strcmp(log_level_names[i], word) == 0)
            return log_level_names[i];
    return "";
}

uint64_t lines_add(struct lines *lines, const struct log_line *from)
{
    lines_close_up(lines);
    lines->items = grow(lines->items, lines->end, &lines->capacity, sizeof *lines->items);
    struct log_line *line = &lines->items[lines->end++];
    *line = *from;
    line->revision = ++lines->revision;
    line->level = lines_level(from->level ? from->level : "");
    line->text = line_clean(from->text);
    lines->bytes += strlen(line->text);
    while (lines->end - lines->first > 1 &&
           (lines->end - lines->first > lines->count_max || lines->bytes > lines->bytes_max))
        lines_drop_first(lines);
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

void evaluations_finish(struct evaluations *evaluations)
{
    free(evaluations->items);
    free(evaluations->text);
    *evaluations = (struct evaluations){0};
}

void evaluations_add(struct evaluations *evaluations, const struct evaluation *evaluation)
{
    struct evaluation *items = evaluations->items;
    uint64_t step = evaluation->step;
    while (evaluations->count && items[evaluations->count - 1].step >= step)
        evaluations->count--;
    if (evaluations->unsaved_from == 0 || step < evaluations->unsaved_from)
        evaluations->unsaved_from = step;
    if (evaluations->count == EVALUATIONS_MAX)
        memmove(items, items + 1, --evaluations->count * sizeof *items);
    evaluations->items =
        grow(items, evaluations->count, &evaluations->capacity, sizeof *evaluations->items);
    evaluations->items[evaluations->count++] = *evaluation;
}

void evaluations_set_text(struct evaluations *evaluations, uint64_t step, const void *bytes,
                          size_t size)
{
    free(evaluations->text);
    evaluations->text_step = step;
    evaluations->text_unsaved = true;
    evaluations->text_size = size < EVALUATIONS_TEXT_MAX ? size : EVALUATIONS_TEXT_MAX;
    evaluations->text = xcalloc(1, evaluations->text_size);
    memcpy(evaluations->text, bytes, evaluations->text_size);
}

struct telemetry {
    struct telemetry_config config;
    struct job_telemetry **jobs;
    size_t count, capacity;
    bool unsaved; /* something of a job may be */
};

struct telemetry *telemetry_create(const struct telemetry_config *config)
{
    struct telemetry *telemetry = xcalloc(1, sizeof *telemetry);
    telemetry->config = *config;
    return telemetry;
}

static void job_telemetry_destroy(struct job_telemetry *job)
{
    steps_finish(&job->steps);
    instructions_finish(&job->instructions);
    evaluations_finish(&job->evaluations);
    traces_finish(&job->traces);
    lines_destroy(job->lines);
    free(job);
}

void telemetry_destroy(struct telemetry *telemetry)
{
    if (!telemetry)
        return;
    for (size_t i = 0; i < telemetry->count; i++)
        job_telemetry_destroy(telemetry->jobs[i]);
    free(telemetry->jobs);
    free(telemetry);
}

/* The index of the job; count if it has none. The newest are asked for most. */
static size_t telemetry_place(const struct telemetry *telemetry, const char *job)
{
    for (size_t i = telemetry->count; i-- > 0;)
        if (strcmp(telemetry->jobs[i]->job, job) == 0)
            return i;
    return telemetry->count;
}

/* The job's record, created on its first report. */
static struct job_telemetry *telemetry_need(struct telemetry *telemetry, const char *id)
{
    size_t index = telemetry_place(telemetry, id);
    if (index < telemetry->count)
        return telemetry->jobs[index];
    struct job_telemetry *job = xcalloc(1, sizeof *job);
    snprintf(job->job, sizeof job->job, "%s", id);
    steps_init(&job->steps);
    job->lines = lines_create(telemetry->config.lines_max, telemetry->config.line_bytes_max);
    telemetry->jobs =
        grow(telemetry->jobs, telemetry->count, &telemetry->capacity, sizeof(*telemetry->jobs));
    telemetry->jobs[telemetry->count++] = job;
    return job;
}

int telemetry_step(struct telemetry *telemetry, const char *job, const struct step_record *record,
                   struct error *err)
{
    telemetry->unsaved = true;
    return steps_add(&telemetry_need(telemetry, job)->steps, record, err);
}

int telemetry_instructions(struct telemetry *telemetry, const char *job, uint32_t epoch,
                           const struct instruction_record *records, size_t count,
                           struct error *err)
{
    struct job_telemetry *record = telemetry_need(telemetry, job);
    telemetry->unsaved = true;
    if (epoch < record->epoch)
        return error_set(err, -ESTALE, "instructions are of epoch %u, %s is in %u", epoch, job,
                         record->epoch);
    if (epoch > record->epoch) {
        instructions_clear(&record->instructions);
        record->epoch = epoch;
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = instructions_add(&record->instructions, &records[i], err);
    return rc;
}

void telemetry_evaluation(struct telemetry *telemetry, const char *job,
                          const struct evaluation_record *record)
{
    struct evaluations *evaluations = &telemetry_need(telemetry, job)->evaluations;
    telemetry->unsaved = true;
    if (record->targets > 0)
        evaluations_add(evaluations,
                        &(struct evaluation){record->step, record->targets, record->loss});
    if (record->text_size > 0)
        evaluations_set_text(evaluations, record->step, record->text, record->text_size);
}

/* Drop traces of other jobs, in the order in which they first reported, until this job's fit. */
static void telemetry_make_room(struct telemetry *telemetry, const struct job_telemetry *job)
{
    size_t bytes = 0;
    for (size_t i = 0; i < telemetry->count; i++)
        bytes += traces_bytes(&telemetry->jobs[i]->traces);
    for (size_t i = 0; i < telemetry->count && bytes > TELEMETRY_TRACE_BYTES_MAX; i++) {
        struct traces *traces = &telemetry->jobs[i]->traces;
        if (telemetry->jobs[i] == job)
            continue;
        bytes -= traces_bytes(traces);
        traces_finish(traces);
    }
}

int telemetry_trace(struct telemetry *telemetry, const char *job, const struct trace_record *record,
                    struct error *err)
{
    struct job_telemetry *found = telemetry_need(telemetry, job);
    int rc = traces_add(&found->traces, record, err);
    telemetry_make_room(telemetry, found);
    return rc;
}

uint64_t telemetry_line(struct telemetry *telemetry, const char *job, const struct log_line *line)
{
    return lines_add(telemetry_need(telemetry, job)->lines, line);
}

static bool job_telemetry_owes(const struct job_telemetry *job)
{
    return job->steps.changed_from != UINT64_MAX || job->steps.gone_from != UINT64_MAX ||
           job->evaluations.unsaved_from > 0 || job->evaluations.text_unsaved;
}

bool job_telemetry_unsaved(const struct job_telemetry *job)
{
    return job_telemetry_owes(job) || job->instructions.unsaved;
}

bool telemetry_owes(const struct telemetry *telemetry)
{
    bool any = false;
    for (size_t i = 0; telemetry->unsaved && i < telemetry->count && !any; i++)
        any = job_telemetry_owes(telemetry->jobs[i]);
    return any;
}

bool telemetry_unsaved(const struct telemetry *telemetry)
{
    bool any = false;
    for (size_t i = 0; telemetry->unsaved && i < telemetry->count && !any; i++)
        any = job_telemetry_unsaved(telemetry->jobs[i]);
    return any;
}

void telemetry_saved(struct telemetry *telemetry, const char *id)
{
    struct job_telemetry *job = telemetry_need(telemetry, id);
    steps_saved(&job->steps);
    job->evaluations.unsaved_from = 0;
    job->evaluations.text_unsaved = false;
    job->instructions.unsaved = false;
    telemetry->unsaved = true;
    telemetry->unsaved = telemetry_unsaved(telemetry);
}

struct job_telemetry *telemetry_restore(struct telemetry *telemetry, const char *id)
{
    struct job_telemetry *job = telemetry_need(telemetry, id);
    steps_finish(&job->steps);
    evaluations_finish(&job->evaluations);
    instructions_finish(&job->instructions);
    job->partial = false;
    return job;
}

void telemetry_release(struct telemetry *telemetry, const char *id)
{
    size_t index = telemetry_place(telemetry, id);
    if (index == telemetry->count || job_telemetry_unsaved(telemetry->jobs[index]))
        return;
    struct job_telemetry *job = telemetry->jobs[index];
    steps_release(&job->steps);
    evaluations_finish(&job->evaluations);
    instructions_finish(&job->instructions);
    job->partial = true;
}

size_t telemetry_count(const struct telemetry *telemetry)
{
    return telemetry->count;
}

const struct job_telemetry *telemetry_at(const struct telemetry *telemetry, size_t index)
{
    return telemetry->jobs[index];
}

const struct job_telemetry *telemetry_find(const struct telemetry *telemetry, const char *job)
{
    size_t index = telemetry_place(telemetry, job);
    return index < telemetry->count ? telemetry->jobs[index] : NULL;
}

void telemetry_forget(struct telemetry *telemetry, const char *job)
{
    size_t index = telemetry_place(telemetry, job);
    if (index == telemetry->count)
        return;
    job_telemetry_destroy(telemetry->jobs[index]);
    telemetry->jobs[index] = telemetry->jobs[--telemetry->count];
}
