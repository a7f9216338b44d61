/* checkpoints.c - turns a checkpoint on disk into one that the job can continue from.
 *
 * A checkpoint is listed by being stored, like everything else at the end of the turn, before the
 * rank that wrote it is answered. So whatever is listed is complete; and a rank that wakes up in an
 * epoch that is over publishes nothing, because its call is refused as too late. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/checkpoint/name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

bool service_saves(const struct service *service, const struct job *job)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    return dossier->config && dossier->config->checkpoint.dir;
}

char *service_checkpoint_root(const struct service *service, const struct job *job)
{
    if (!service_saves(service, job))
        return NULL;
    return checkpoint_root(dossier_find(service, job->id)->config->checkpoint.dir, job->id,
                           store_cluster(service->options.store));
}

static char *find_folder(const struct job *job, const struct store_checkpoint *listed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (listed[i].step == job->checkpoint_step && listed[i].epoch == job->checkpoint_epoch)
            return xstrdup(listed[i].folder);
    return NULL;
}

char *service_newest_checkpoint(const struct service *service, const struct job *job)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    char *folder = NULL;
    if (job->checkpoint_step > 0 &&
        store_read_checkpoints(service->options.store, job, &listed, &count, NULL) == 0 &&
        count > 0)
        folder = find_folder(job, listed, count);
    store_checkpoints_free(listed, count);
    return folder;
}

/* The newest undamaged checkpoint that is older than the job's; NULL: there is none. */
static const struct store_checkpoint *
find_older(const struct job *job, const struct store_checkpoint *listed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!listed[i].damaged && listed[i].step < job->checkpoint_step)
            return &listed[i];
    return NULL;
}

/* Every rank of the epoch may report this; only the first report counts. */
void service_damage_checkpoint(struct service *service, const struct job *job, uint64_t step,
                               const char *words)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    if (step == 0 || step != job->checkpoint_step)
        return;
    store_read_checkpoints(service->options.store, job, &listed, &count, NULL);
    store_damage_checkpoint(service->options.store, job, step, job->checkpoint_epoch);
    const struct store_checkpoint *older = find_older(job, listed, count);
    struct job_event event = {.kind = JOB_EVENT_UNLISTED, .job = job->id, .epoch = job->epoch};
    event.older.step = older ? older->step : 0;
    event.older.epoch = older ? older->epoch : 0;
    service_apply(service, &event, NULL);
    json_t *json = json_pack("{s:I, s:I, s:s}", "step", (json_int_t)step, "older_step",
                             (json_int_t)event.older.step, "reason", words);
    if (older)
        service_tell(service, "checkpoint-damaged", job->id, "", json,
                     "%s cannot continue from its checkpoint of step %" PRIu64
                     ", and uses that of step %" PRIu64 " instead: %s",
                     job->id, step, older->step, words);
    else
        service_tell(service, "checkpoint-damaged", job->id, "", json,
                     "%s cannot continue from its checkpoint of step %" PRIu64
                     ", and no older one is listed: %s",
                     job->id, step, words);
    store_checkpoints_free(listed, count);
}

/* Drop what the ranks told each other about this checkpoint; it is of no more use. */
static void forget_values(struct service *service, const Gimbal__StagedRequest *request)
{
    char *prefix = xasprintf(RENDEZVOUS_KEPT "checkpoint/%" PRIu64 "/", request->step);
    rendezvous_forget_prefix(service->rendezvous, request->job, prefix);
    store_delete_values(service->options.store, request->job, prefix);
    free(prefix);
}

static void list(struct service *service, const struct job *job,
                 const Gimbal__StagedRequest *request)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    char *root = service_checkpoint_root(service, job);
    char *name = checkpoint_name(request->step, request->epoch), size[32];
    char *folder = xasprintf("%s/%s", root, name);
    struct store_checkpoint checkpoint = {request->step, job->epoch, folder, request->bytes,
                                          service_now_ms(service)};
    struct job_event event = {
        .kind = JOB_EVENT_STAGED, .job = job->id, .epoch = job->epoch, .step = request->step};
    store_put_checkpoint(service->options.store, job, &checkpoint,
                         (size_t)dossier->config->checkpoint.keep);
    service_apply(service, &event, NULL);
    json_t *json =
        json_pack("{s:I, s:s, s:I, s:i}", "step", (json_int_t)request->step, "folder", folder,
                  "bytes", (json_int_t)request->bytes, "shards", (int)request->shards);
    service_tell(service, "checkpoint", job->id, "", json,
                 "%s checkpoint of step %" PRIu64 ", %s: %s", job->id, request->step,
                 units_print_bytes(size, sizeof size, (double)request->bytes), folder);
    free(folder);
    free(name);
    free(root);
}

/* Check that the report comes from rank 0 of the job's current epoch and that the job saves
 * checkpoints. */
static int check(const struct service *service, struct rpc_call *call, const struct job **out,
                 struct error *err)
{
    const Gimbal__StagedRequest *request = rpc_call_request(call);
    int rc =
        service_find_rank(service, call, request->job, request->epoch, &request->rank, out, err);
    if (rc == 0 && !(*out)->holding)
        rc = error_set(err, -ESTALE, "%s is %s: a checkpoint of epoch %" PRIu64 " comes too late",
                       request->job, job_state_name((*out)->state), request->epoch);
    const struct dossier *dossier = rc == 0 ? dossier_find(service, request->job) : NULL;
    if (rc == 0 && (!dossier->config || !dossier->config->checkpoint.dir))
        rc = error_set(err, -EINVAL, "%s has no checkpoint.dir that this release understands",
                       request->job);
    if (rc == 0 && request->rank != 0)
        rc = error_set(err, -EINVAL, "rank %u reports a checkpoint, which only rank 0 does",
                       request->rank);
    return rc;
}

/* Fill in the names of all listed checkpoints, to be freed by the caller. */
static void fill(const struct service *service, const struct job *job, Gimbal__StagedReply *reply)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    store_read_checkpoints(service->options.store, job, &listed, &count, NULL);
    reply->listed = xcalloc(count, sizeof(char *));
    for (size_t i = 0; i < count; i++)
        reply->listed[reply->n_listed++] = checkpoint_name(listed[i].step, listed[i].epoch);
    store_checkpoints_free(listed, count);
}

static void staged(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__StagedRequest *request = rpc_call_request(call);
    struct error err;
    const struct job *job;
    int rc = check(service, call, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    struct dossier *dossier = dossier_find(service, job->id);
    if (request->failure[0] && dossier->unsaved_step < request->step) {
        dossier->unsaved_step = request->step;
        service_tell(service, "checkpoint-failed", job->id, "", NULL,
                     "%s has no checkpoint of step %" PRIu64 ": %s; training continues", job->id,
                     request->step, request->failure);
    } else if (!request->failure[0] && job->checkpoint_step < request->step) {
        list(service, job, request);
    }
    forget_values(service, request);
    service_turn(service);
    Gimbal__StagedReply reply = GIMBAL__STAGED_REPLY__INIT;
    fill(service, job, &reply);
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < reply.n_listed; i++)
        free(reply.listed[i]);
    free(reply.listed);
}

Gimbal__Checkpoint **checkpoints_to_wire(const struct service *service, const struct job *job,
                                         size_t *count)
{
    struct store_checkpoint *listed = NULL;
    size_t found = 0;
    store_read_checkpoints(service->options.store, job, &listed, &found, NULL);
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

const struct service_handler checkpoint_handlers[] = {
    {COORDINATOR_STAGED, staged},
    {0, NULL},
};
