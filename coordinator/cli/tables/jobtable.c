/* jobtable.c - what `gimbal jobs` shows of a job. */
#include "coordinator/cli/tables/jobtable.h"

#include "common/base/units.h"
#include "coordinator/cli/following/progress.h"

#include <time.h>

static const struct column columns[] = {
    {"JOB"},
    {"NAME"},
    {"USER", .wide = true},
    {"STATE"},
    {"PROGRESS", .right = true},
    {"ETA", .right = true},
    {"LOSS", .right = true},
    {"TOK/S", .right = true},
    {"STEP TIME", .right = true, .wide = true},
    {"PLAN"},
    {"DEVICES", .wide = true},
    {"EPOCH", .right = true, .wide = true},
    {"RESTARTS", .right = true, .wide = true},
    {"CHECKPOINT", .right = true, .wide = true},
    {"SUBMITTED", .wide = true},
    {"REASON"},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void add_devices(struct table *table, const Gimbal__JobStatus *job)
{
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < job->n_devices && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                                 job->devices[i]);
    table_add(table, "%s", text);
}

static void add_time(struct table *table, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm local;
    char text[32] = "";
    if (unix_ms && localtime_r(&seconds, &local))
        strftime(text, sizeof text, "%F %T", &local);
    table_add(table, "%s", text);
}

/* Nothing is shown for a job that has made no step, nor the loss of one that resumes from a step of
 * a former epoch, which is 0. */
static void add_numbers(struct table *table, const Gimbal__JobStatus *job)
{
    char text[32];
    double left = resource_job_seconds_left(job);
    if (job->step_count)
        table_add(table, "%.1f%%", 100.0 * (double)job->step / (double)job->step_count);
    else
        table_add(table, "%s", "");
    table_add(table, "%s", left > 0 ? units_print_duration(text, sizeof text, left) : "");
    if (job->step && job->loss != 0)
        table_add(table, "%.3f", job->loss);
    else
        table_add(table, "%s", "");
    table_add(table, "%s",
              job->tokens_per_s > 0 ? progress_format_count(text, sizeof text, job->tokens_per_s)
                                    : "");
    if (job->step_time_s > 0)
        table_add(table, "%s", units_print_seconds(text, sizeof text, job->step_time_s));
    else
        table_add(table, "%s", "");
}

static void add_row(struct table *table, const Gimbal__JobStatus *job)
{
    table_add(table, "%s", job->job);
    table_add(table, "%s", job->name);
    table_add(table, "%s", job->user);
    table_add(table, "%s", resource_job_state(job->state));
    add_numbers(table, job);
    table_add(table, "%s", job->plan_id);
    add_devices(table, job);
    table_add(table, "%llu", (unsigned long long)job->epoch);
    table_add(table, "%u/%u", job->restarts, job->restarts_max);
    table_add(table, job->checkpoint_step ? "%llu" : "", (unsigned long long)job->checkpoint_step);
    add_time(table, job->submitted_unix_ms);
    table_add(table, "%s", job->reason);
}

void jobtable_print(const struct common *common, Gimbal__JobStatus *const *jobs, size_t count,
                    FILE *out)
{
    if (common->output >= OUTPUT_JSON) {
        json_t *items = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(items, resource_job(jobs[i]));
        output_print_list((enum output)common->output, "JobList", "jobs", items, out);
        return;
    }
    struct table *table = table_create(columns, COLUMNS);
    for (size_t i = 0; i < count; i++)
        add_row(table, jobs[i]);
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}
