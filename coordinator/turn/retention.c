/* retention.c - the store decides what is due, since it may know of more jobs than memory does. */
#include "coordinator/turn/retention.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "coordinator/turn/dossiers.h"

#define REMOVED_TOGETHER 8

void retention_note_end(struct state *state)
{
    state->retention->next_ms = 0;
}

uint64_t retention_next_ms(const struct state *state)
{
    return state->retention->next_ms;
}

/* When the job that ended first reaches its age; UINT64_MAX: never. */
static uint64_t retention_oldest_due_ms(const struct state *state)
{
    uint64_t age_ms = state->options.retention.age_ms, due_ms = UINT64_MAX;
    for (size_t i = 0; age_ms > 0 && i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        if (job_ended(job) && job->ended_ms + age_ms < due_ms)
            due_ms = job->ended_ms + age_ms;
    }
    return due_ms;
}

void retention_enforce(struct state *state)
{
    const struct retention_limits *limits = &state->options.retention;
    uint64_t now_ms = state_now_ms(state), numbers[REMOVED_TOGETHER];
    struct error err;
    size_t count;
    if (now_ms < state->retention->next_ms)
        return;
    uint64_t before_ms =
        limits->age_ms > 0 && now_ms > limits->age_ms ? now_ms - limits->age_ms : 0;
    if (store_read_overdue(state->options.store, limits->jobs > 0 ? limits->jobs : SIZE_MAX,
                           before_ms, numbers, REMOVED_TOGETHER, &count, &err) < 0) {
        log_line(LOG_ERROR, "jobs to remove: %s", err.text); /* the next commit fails */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        store_remove_job(state->options.store, numbers[i]);
        jobs_forget(state->jobs, numbers[i]);
    }
    if (count > 0)
        dossiers_prune(state);
    state->retention->next_ms = count > 0 ? 0 : retention_oldest_due_ms(state);
}

/* "40 days", in the largest unit of which there are two, or the smallest. */
static const char *age_print(char *out, size_t size, uint64_t past_ms)
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
    uint64_t seconds = past_ms / 1000;
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && seconds < 2 * units[i].seconds)
        i++;
    uint64_t count = seconds / units[i].seconds;
    snprintf(out, size, "%" PRIu64 " %s%s", count, units[i].name, count == 1 ? "" : "s");
    return out;
}

int retention_explain(const struct state *state, const char *id, struct error *err)
{
    struct store_removed removed;
    char ago[32];
    uint64_t number;
    int end = 0;
    if (sscanf(id, "j-%" SCNu64 "%n", &number, &end) != 1 || id[end] != '\0' ||
        store_find_removed(state->options.store, number, &removed, NULL) != 1)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    uint64_t now_ms = state_now_ms(state);
    uint64_t past_ms = now_ms > removed.ended_ms ? now_ms - removed.ended_ms : 0;
    return error_set(err, -ENOENT, "%s ended %s ago and was removed; it was %s", id,
                     age_print(ago, sizeof ago, past_ms), job_state_name(removed.state));
}
