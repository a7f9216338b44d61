/* checkpoints.c - reads the list of the store, and turns it into what a job continues from. */
#include "coordinator/turn/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/config/folders.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"

/* As the job file says, or else as the cluster did when it was submitted; NULL: nowhere. */
static const char *checkpoints_dir(const struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    if (dossier->config && dossier->config->checkpoint.dir)
        return dossier->config->checkpoint.dir;
    return job->saves_in[0] ? job->saves_in : NULL;
}

bool checkpoints_saves(const struct state *state, const struct job *job)
{
    return checkpoints_dir(state, job) != NULL;
}

char *checkpoints_root(const struct state *state, const struct job *job)
{
    const char *dir = checkpoints_dir(state, job);
    return dir ? checkpoint_root(dir, job->id, store_cluster(state->options.store)) : NULL;
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

/* "; it has those of step 200, 150 and 100"; "" if there is none. */
static void checkpoint_print_steps(const struct store_checkpoint *listed, size_t count, char *out,
                                   size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used + 32 < size; i++) {
        const char *before = i == 0 ? "; it has those of step " : i + 1 < count ? ", " : " and ";
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64 "%s", before, listed[i].step,
                                 listed[i].damaged ? " (damaged)" : "");
    }
}

static const struct store_checkpoint *checkpoint_choose(const struct store_checkpoint *listed,
                                                        size_t count, uint64_t step)
{
    for (size_t i = 0; i < count; i++)
        if (step > 0 ? listed[i].step == step : !listed[i].damaged)
            return &listed[i];
    return NULL;
}

static int checkpoint_refuse(const struct job *job, const struct store_checkpoint *listed,
                             size_t count, uint64_t step, struct error *err)
{
    char steps[256];
    checkpoint_print_steps(listed, count, steps, sizeof steps);
    if (step > 0)
        return error_set(err, -ENOENT, "%s has no checkpoint of step %" PRIu64 "%s", job->id, step,
                         count > 0 ? steps : ": none is listed");
    return error_set(err, -ENOENT, "%s has no undamaged checkpoint%s", job->id,
                     count > 0 ? steps : ": none is listed");
}

int checkpoints_origin(const struct state *state, const struct job *job, uint64_t step,
                       struct ancestor *out, struct error *err)
{
    struct store_checkpoint *listed = NULL;
    struct job_config *config = NULL;
    size_t count = 0;
    int rc = store_read_checkpoints(state->options.store, job, &listed, &count, err);
    if (rc < 0)
        return rc;
    const struct store_checkpoint *chosen = checkpoint_choose(listed, count, step);
    rc = chosen ? job_config_parse(job->text, strlen(job->text), job->id, &config, err)
                : checkpoint_refuse(job, listed, count, step, err);
    if (rc == 0)
        *out = (struct ancestor){
            .folder = xstrdup(chosen->folder),
            .spec = xstrdup(job->text),
            .step = chosen->step,
            .samples = job->origin_samples +
                       (chosen->step - job->origin_step) * (uint64_t)config->train.global_batch,
        };
    job_config_destroy(config);
    store_checkpoints_free(listed, count);
    return rc;
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
