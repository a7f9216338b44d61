/* telemetry.c - one record per job that has reported; few jobs run at a time, so a plain array. */
#include "coordinator/telemetry/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

struct telemetry {
    struct telemetry_config config;
    struct job_telemetry **jobs;
    size_t count, capacity;
};

struct telemetry *telemetry_create(const struct telemetry_config *config)
{
    struct telemetry *telemetry = xcalloc(1, sizeof *telemetry);
    telemetry->config = *config;
    return telemetry;
}

static void job_telemetry_destroy(struct job_telemetry *job)
{
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

/* The index of the job; count if it has none. */
static size_t place(const struct telemetry *telemetry, const char *job)
{
    size_t i = 0;
    while (i < telemetry->count && strcmp(telemetry->jobs[i]->job, job) != 0)
        i++;
    return i;
}

/* The job's record, created on its first report. */
static struct job_telemetry *need(struct telemetry *telemetry, const char *id)
{
    size_t index = place(telemetry, id);
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
    return steps_add(&need(telemetry, job)->steps, record, err);
}

int telemetry_instructions(struct telemetry *telemetry, const char *job, uint32_t epoch,
                           const struct instruction_record *records, size_t count,
                           struct error *err)
{
    struct job_telemetry *record = need(telemetry, job);
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
    struct evaluations *evaluations = &need(telemetry, job)->evaluations;
    if (record->targets > 0)
        evaluations_add(evaluations, record->step, record->loss);
    if (record->text_size > 0)
        evaluations_set_text(evaluations, record->text, record->text_size);
}

/* Drop traces of other jobs, in the order in which they first reported, until this job's fit. */
static void make_room(struct telemetry *telemetry, const struct job_telemetry *job)
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
    struct job_telemetry *found = need(telemetry, job);
    int rc = traces_add(&found->traces, record, err);
    make_room(telemetry, found);
    return rc;
}

uint64_t telemetry_line(struct telemetry *telemetry, const char *job, const struct log_line *line)
{
    return lines_add(need(telemetry, job)->lines, line);
}

const struct job_telemetry *telemetry_find(const struct telemetry *telemetry, const char *job)
{
    size_t index = place(telemetry, job);
    return index < telemetry->count ? telemetry->jobs[index] : NULL;
}

void telemetry_forget(struct telemetry *telemetry, const char *job)
{
    size_t index = place(telemetry, job);
    if (index == telemetry->count)
        return;
    job_telemetry_destroy(telemetry->jobs[index]);
    telemetry->jobs[index] = telemetry->jobs[--telemetry->count];
}
