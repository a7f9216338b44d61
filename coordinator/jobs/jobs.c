/* jobs.c - the list of jobs: submission, lookup, restoration, and passing events on to them.
 *
 * Numbers only grow, so the list stays sorted when jobs are appended, and an id is found by its
 * number. */
#include "coordinator/jobs/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/text.h"
#include "coordinator/jobs/internal.h"

struct jobs *jobs_create(const struct jobs_config *config, uint64_t first_number)
{
    struct jobs *jobs = xcalloc(1, sizeof *jobs);
    jobs->config = *config;
    jobs->next_number = first_number;
    return jobs;
}

void jobs_destroy(struct jobs *jobs)
{
    if (!jobs)
        return;
    for (size_t i = 0; i < jobs->count; i++)
        job_destroy(jobs->items[i]);
    free(jobs->items);
    free(jobs);
}

size_t jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}

const struct job *jobs_at(const struct jobs *jobs, size_t index)
{
    return jobs->items[index];
}

/* The place of the number, or where it would be. */
static size_t jobs_place(const struct jobs *jobs, uint64_t number)
{
    size_t low = 0, high = jobs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (jobs->items[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct job *jobs_lookup(const struct jobs *jobs, const char *id)
{
    uint64_t number;
    if (sscanf(id, "j-%" SCNu64, &number) != 1)
        return NULL;
    size_t at = jobs_place(jobs, number);
    return at < jobs->count && strcmp(jobs->items[at]->id, id) == 0 ? jobs->items[at] : NULL;
}

void jobs_forget(struct jobs *jobs, uint64_t number)
{
    size_t at = jobs_place(jobs, number);
    if (at == jobs->count || jobs->items[at]->number != number || !job_ended(jobs->items[at]))
        return;
    job_destroy(jobs->items[at]);
    memmove(jobs->items + at, jobs->items + at + 1, (--jobs->count - at) * sizeof(struct job *));
}

const struct job *jobs_find(const struct jobs *jobs, const char *id)
{
    return jobs_lookup(jobs, id);
}

static void jobs_append(struct jobs *jobs, struct job *job)
{
    jobs->items = grow(jobs->items, jobs->count, &jobs->capacity, sizeof(*jobs->items));
    jobs->items[jobs->count++] = job;
    if (job->number >= jobs->next_number)
        jobs->next_number = job->number + 1;
}

/* Whether the text has 1 to `most` printable ASCII characters. */
static bool text_is_plain(const char *text, size_t most)
{
    size_t length = 0;
    for (; text[length]; length++)
        if (text[length] < ' ' || text[length] > '~')
            return false;
    return length >= 1 && length <= most;
}

static int submission_check(const struct job_submission *submission, struct error *err)
{
    if (!text_is_name(submission->name))
        return error_set(err, -EINVAL,
                         "name: a job's name is 1 to %d letters, digits, '.', '-' or '_', and "
                         "begins with a letter or digit",
                         HARDWARE_NAME_SIZE - 1);
    if (!text_is_plain(submission->user, 63))
        return error_set(err, -EINVAL, "a user's name is 1 to 63 printable characters");
    if (submission->key[0] && !text_is_plain(submission->key, 127))
        return error_set(err, -EINVAL, "a submission's key is at most 127 printable characters");
    size_t size = strlen(submission->text);
    if (size >= JOB_TEXT_SIZE)
        return error_set(err, -EINVAL, "the job file is %zu bytes long, at most %d are taken", size,
                         JOB_TEXT_SIZE - 1);
    if (submission->devices_min < 1 || submission->devices_min > submission->devices_max)
        return error_set(err, -EINVAL, "devices: {min: %u, max: %u}: it must be 1 <= min <= max",
                         submission->devices_min, submission->devices_max);
    return 0;
}

static struct job *jobs_find_key(const struct jobs *jobs, const struct job_submission *submission)
{
    for (size_t i = jobs->count; submission->key[0] && i-- > 0;)
        if (strcmp(jobs->items[i]->key, submission->key) == 0 &&
            strcmp(jobs->items[i]->user, submission->user) == 0)
            return jobs->items[i];
    return NULL;
}

bool jobs_knows(const struct jobs *jobs, const struct job_submission *submission)
{
    return jobs_find_key(jobs, submission) != NULL;
}

static int jobs_check_room(const struct jobs *jobs, struct error *err)
{
    size_t pending = 0;
    for (size_t i = 0; i < jobs->count; i++)
        pending += jobs->items[i]->state == JOB_PENDING ? 1 : 0;
    if (pending >= jobs->config.pending_max)
        return error_set(err, -EAGAIN, "the queue is full: %zu jobs are waiting, try again later",
                         pending);
    return 0;
}

int jobs_submit(struct jobs *jobs, const struct job_submission *submission, uint64_t now_ms,
                const struct job **out, struct job_actions *actions, struct error *err)
{
    int rc = submission_check(submission, err);
    if (rc < 0)
        return rc;
    struct job *known = jobs_find_key(jobs, submission);
    if (known && !job_is_of(known, submission))
        return error_set(err, -EEXIST, "the key '%s' was used to submit another job file, as %s",
                         submission->key, known->id);
    if (known) {
        *out = known;
        return 0;
    }
    rc = jobs_check_room(jobs, err);
    if (rc < 0)
        return rc;

    struct job *job = xcalloc(1, sizeof *job);
    job->number = jobs->next_number;
    snprintf(job->id, sizeof job->id, "j-%" PRIu64, job->number);
    job->key = xstrdup(submission->key);
    job->name = xstrdup(submission->name);
    job->user = xstrdup(submission->user);
    job->text = xstrdup(submission->text);
    job->given = xstrdup(submission->given ? submission->given : "");
    job->named = xstrdup(submission->named ? submission->named : "");
    job->origin = xstrdup(submission->origin ? submission->origin : "");
    job->saves_in = xstrdup(submission->saves_in ? submission->saves_in : "");
    job->origin_step = submission->origin_step;
    job->origin_samples = submission->origin_samples;
    job->origin_weights = submission->origin_weights;
    job->devices_min = job->devices_needed = submission->devices_min;
    job->devices_max = submission->devices_max;
    job->kind = submission->kind;
    job->steps = submission->steps;
    job->restarts_max = submission->restarts_max;
    job->replans = submission->replans;
    job->submitted_ms = now_ms;
    job->loss = NAN;
    jobs_append(jobs, job);
    job_fire(job, TRIGGER_SUBMITTED, NULL, now_ms, actions);
    *out = job;
    return 0;
}

int jobs_apply(struct jobs *jobs, const struct job_event *given, uint64_t now_ms,
               struct job_actions *actions, struct error *err)
{
    struct job_event event = *given;
    if (!event.words)
        event.words = "";
    if (event.kind == JOB_EVENT_WORKER_LOST || event.kind == JOB_EVENT_WORKER_DRAINS ||
        event.kind == JOB_EVENT_WORKER_JOINED) {
        for (size_t i = 0; i < jobs->count; i++)
            job_event_worker(jobs->items[i], &event, now_ms, actions);
        return 0;
    }
    struct job *job = jobs_lookup(jobs, event.job);
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%s'", event.job);
    return job_event_apply(job, &event, now_ms, actions, err);
}

int jobs_restore(struct jobs *jobs, const struct job *stored, struct job_actions *actions,
                 struct error *err)
{
    if (jobs->count && jobs->items[jobs->count - 1]->number >= stored->number)
        return error_set(err, -EEXIST, "%s is restored after %s", stored->id,
                         jobs->items[jobs->count - 1]->id);
    struct job *job = job_copy(stored);
    job->step_is_old = true;
    jobs_append(jobs, job);
    job_resume(job, actions);
    return 0;
}
