/* curves.c - when what was measured goes to the store, and comes back. */
#include "coordinator/turn/curves.h"

#include <stdio.h>
#include <string.h>

#include "common/base/log.h"

#define KEEP_MS 200
#define KEEP_SCARCE_MS 60000 /* while the disk is full; nobody waits then */

int curves_restore(struct state *state, const struct job *job, struct error *err)
{
    struct job_telemetry *into = telemetry_restore(state->telemetry, job->id);
    if (!job_ended(job))
        return store_read_measured(state->options.store, job, into, err);
    int rc = store_read_newest_steps(state->options.store, job, STEPS_WINDOW, into, err);
    telemetry_release(state->telemetry, job->id);
    return rc;
}

/* Note that all of an ended job is in memory, in the place of the one that was looked at longest
 * ago. */
static void curves_remember(const struct state *state, const char *job)
{
    struct curves *curves = state->curves;
    for (size_t i = 0; i < CURVES_ENDED; i++)
        if (strcmp(curves->ended[i], job) == 0)
            return;
    char *place = curves->ended[curves->next++ % CURVES_ENDED];
    if (place[0])
        telemetry_release(state->telemetry, place);
    snprintf(place, JOB_ID_SIZE, "%s", job);
}

const struct job_telemetry *curves_whole(const struct state *state, const struct job *job)
{
    const struct job_telemetry *found = telemetry_find(state->telemetry, job->id);
    struct error err;
    if (!found || !found->partial)
        return found;
    struct job_telemetry *into = telemetry_restore(state->telemetry, job->id);
    if (store_read_measured(state->options.store, job, into, &err) < 0)
        log_line(LOG_ERROR, "%s: what it has measured cannot be read: %s", job->id, err.text);
    if (job_ended(job))
        curves_remember(state, job->id);
    return into;
}

void curves_end(struct state *state, const struct job *job)
{
    const struct job_telemetry *found = telemetry_find(state->telemetry, job->id);
    if (found && !found->partial)
        curves_remember(state, job->id);
}

void curves_keep_all(struct state *state)
{
    for (size_t i = 0; i < telemetry_count(state->telemetry); i++) {
        const struct job_telemetry *measured = telemetry_at(state->telemetry, i);
        const struct job *job = jobs_find(state->jobs, measured->job);
        if (!job_telemetry_unsaved(measured))
            continue;
        if (job)
            store_put_measured(state->options.store, job, measured);
        telemetry_saved(state->telemetry, measured->job);
    }
    state->curves->since_ms = 0;
}

static uint64_t curves_patience_ms(const struct state *state)
{
    return state->disk_scarce ? KEEP_SCARCE_MS : KEEP_MS;
}

bool curves_keep(struct state *state)
{
    uint64_t now_ms = state_now_ms(state);
    if (!telemetry_unsaved(state->telemetry)) {
        state->curves->since_ms = 0;
        return true;
    }
    if (state->curves->since_ms == 0)
        state->curves->since_ms = now_ms;
    bool scarce = state->disk_scarce;
    if (now_ms < curves_next_ms(state) && (scarce || !store_changed(state->options.store)))
        return scarce || !telemetry_owes(state->telemetry);
    curves_keep_all(state);
    return true;
}

uint64_t curves_next_ms(const struct state *state)
{
    uint64_t since_ms = state->curves->since_ms;
    return since_ms == 0 ? UINT64_MAX : since_ms + curves_patience_ms(state);
}
