/* checkpoints.c - reads the list of the store, and turns it into what a job continues from. */
#include "coordinator/turn/checkpoints.h"

#include <inttypes.h>

#include "common/base/memory.h"
#include "common/config/folders.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"

bool checkpoints_saves(const struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    return dossier->config && dossier->config->checkpoint.dir;
}

char *checkpoints_root(const struct state *state, const struct job *job)
{
    if (!checkpoints_saves(state, job))
        return NULL;
    return checkpoint_root(dossier_find(state, job->id)->config->checkpoint.dir, job->id,
                           store_cluster(state->options.store));
}

static char *checkpoint_find_folder(const struct job *job, const struct store_checkpoint *listed,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (listed[i].step == job->checkpoint_step && listed[i].epoch == job->checkpoint_epoch)
            return xstrdup(listed[i].folder);
    return NULL;
}

char *checkpoints_newest(const struct state *state, const struct job *job)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    char *folder = NULL;
    if (job->checkpoint_step > 0 &&
        store_read_checkpoints(state->options.store, job, &listed, &count, NULL) == 0 && count > 0)
        folder = checkpoint_find_folder(job, listed, count);
    store_checkpoints_free(listed, count);
    return folder;
}

/* The newest undamaged checkpoint that is older than the job's; NULL: there is none. */
static const struct store_checkpoint *
checkpoint_find_older(const struct job *job, const struct store_checkpoint *listed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!listed[i].damaged && listed[i].step < job->checkpoint_step)
            return &listed[i];
    return NULL;
}

/* Every rank of the epoch may report it; only the first report counts. */
void checkpoints_damage(struct state *state, const struct job *job, uint64_t step,
                        const char *words)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    if (step == 0 || step != job->checkpoint_step)
        return;
    store_read_checkpoints(state->options.store, job, &listed, &count, NULL);
    store_damage_checkpoint(state->options.store, job, step, job->checkpoint_epoch);
    const struct store_checkpoint *older = checkpoint_find_older(job, listed, count);
    struct job_event event = {.kind = JOB_EVENT_UNLISTED, .job = job->id, .epoch = job->epoch};
    event.older.step = older ? older->step : 0;
    event.older.epoch = older ? older->epoch : 0;
    state_apply(state, &event, NULL);
    json_t *json = json_pack("{s:I, s:I, s:s}", "step", (json_int_t)step, "older_step",
                             (json_int_t)event.older.step, "reason", words);
    if (older)
        history_tell(state, "checkpoint-damaged", job->id, "", json,
                     "%s cannot continue from its checkpoint of step %" PRIu64
                     ", and uses that of step %" PRIu64 " instead: %s",
                     job->id, step, older->step, words);
    else
        history_tell(state, "checkpoint-damaged", job->id, "", json,
                     "%s cannot continue from its checkpoint of step %" PRIu64
                     ", and no older one is listed: %s",
                     job->id, step, words);
    store_checkpoints_free(listed, count);
}

Gimbal__Checkpoint **checkpoints_to_wire(const struct state *state, const struct job *job,
                                         size_t *count)
{
    struct store_checkpoint *listed = NULL;
    size_t found = 0;
    store_read_checkpoints(state->options.store, job, &listed, &found, NULL);
    Gimbal__Checkpoint **out = xcalloc(found, sizeof(Gimbal__Checkpoint *));
    for (size_t i = 0; i < found; i++) {
        out[i] = xcalloc(1, sizeof *out[i]);
        gimbal__checkpoint__init(out[i]);
        out[i]->step = listed[i].step;
        out[i]->epoch = listed[i].epoch;
        out[i]->folder = xstrdup(listed[i].folder);
        out[i]->bytes = listed[i].bytes;
        out[i]->unix_ms = listed[i].unix_ms;
        out[i]->damaged = listed[i].damaged;
    }
    store_checkpoints_free(listed, found);
    *count = found;
    return out;
}
