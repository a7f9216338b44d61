/* saved.c - finds checkpoints by what people call them. */
#include "coordinator/cli/saved.h"

#include "common/base/memory.h"
#include "common/config/paths.h"
#include "common/message/message.h"
#include "common/models/model.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void saved_close(struct saved *saved)
{
    free(saved->folder);
    free(saved->spec);
    free(saved->job);
    *saved = (struct saved){0};
}

int saved_is_one(const char *folder, struct error *err)
{
    char *path = xasprintf("%s/" MANIFEST_NAME, folder);
    bool has = access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
    free(path);
    if (has)
        return EXIT_DONE;
    return error_set(err, EXIT_INPUT,
                     "'%s' has no manifest.json: name the folder of one step, such as "
                     ".../step-200.epoch-1",
                     folder);
}

int saved_reach(const struct saved *saved, struct error *err)
{
    if (saved_is_one(saved->folder, err) == EXIT_DONE)
        return EXIT_DONE;
    return error_set(err, EXIT_INPUT,
                     "'%s' cannot be reached from here: run this where the nodes of %s have it",
                     saved->folder, saved->job ? saved->job : "its job");
}

static int saved_find_path(const char *path, struct saved *out, struct error *err)
{
    struct ancestor origin = {0};
    struct manifest manifest = {0};
    char *whole = NULL, *folder = NULL;
    int rc = path_resolve("the checkpoint", path, PATH_HERE, &whole, err);
    if (rc == 0)
        rc = ancestor_find(whole, &folder, err);
    if (rc == 0)
        rc = ancestor_read(folder, false, &origin, &manifest, err);
    if (rc == 0)
        *out = (struct saved){.folder = origin.folder, .spec = origin.spec, .step = origin.step};
    manifest_finish(&manifest);
    free(folder);
    free(whole);
    return exit_of_errno(rc);
}

/* There is none to take. */
static int saved_refuse_none(const Gimbal__GetJobReply *job, const char *name, struct error *err)
{
    if (job->n_checkpoints > 0)
        return error_set(err, EXIT_INPUT, "%s has no undamaged checkpoint", name);
    if (job->status && !*job->status->checkpoint_folder)
        return error_set(err, EXIT_INPUT,
                         "%s has saved nothing: neither its job file (checkpoint.dir) nor the "
                         "coordinator's settings (checkpoints) name a folder",
                         name);
    return error_set(err, EXIT_INPUT,
                     "%s has saved no checkpoint yet: 'gimbal checkpoint list %s' shows when "
                     "there is one",
                     name, name);
}

/* Checkpoints are listed with the newest first. */
static int saved_choose(const Gimbal__GetJobReply *job, const char *name, int64_t step,
                        const Gimbal__Checkpoint **out, struct error *err)
{
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        *out = job->checkpoints[i];
        if (step < 0 ? !(*out)->damaged : (*out)->step == (uint64_t)step)
            return EXIT_DONE;
    }
    return step < 0 ? saved_refuse_none(job, name, err)
                    : error_set(err, EXIT_INPUT,
                                "%s has no checkpoint of step %" PRId64
                                ": 'gimbal checkpoint list %s' shows them",
                                name, step, name);
}

static int saved_find_listed(const struct common *common, const char *job, int64_t step,
                             struct saved *out, struct error *err)
{
    const Gimbal__Checkpoint *checkpoint = NULL;
    Gimbal__GetJobReply *reply;
    int code = client_get_job_once(common, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    code = saved_choose(reply, job, step, &checkpoint, err);
    if (code == EXIT_DONE)
        *out = (struct saved){.folder = xstrdup(checkpoint->folder),
                              .spec = xstrdup(reply->spec ? reply->spec->yaml : ""),
                              .job = xstrdup(job),
                              .step = checkpoint->step};
    message_free(&reply->base);
    return code;
}

/* Split "j-1@100". EXIT_USAGE: what is behind the @ is no step. */
static int saved_split(char *what, int64_t *step, struct error *err)
{
    char *at = strchr(what, '@'), *end;
    if (!at)
        return EXIT_DONE;
    *at = '\0';
    errno = 0;
    long long value = strtoll(at + 1, &end, 10);
    if (at[1] < '0' || at[1] > '9' || *end || errno)
        return error_set(err, EXIT_USAGE, "'%.40s' is no step of %s: write %s@STEP, such as %s@100",
                         at + 1, what, what, what);
    *step = value;
    return EXIT_DONE;
}

int saved_find(const struct common *common, const char *what, int64_t step, struct saved *out,
               struct error *err)
{
    *out = (struct saved){0};
    if (named_path(what))
        return saved_find_path(what, out, err);
    char *job = xstrdup(what);
    int code = saved_split(job, &step, err);
    if (code == EXIT_DONE)
        code = saved_find_listed(common, job, step, out, err);
    free(job);
    return code;
}

/* What is listed for a job is told by the coordinator, wherever it lies. */
static int saved_read_origin(const struct saved *saved, bool weights_only, struct ancestor *out,
                             struct manifest *manifest, struct error *err)
{
    if (!saved->job)
        return ancestor_read(saved->folder, weights_only, out, manifest, err);
    *out = (struct ancestor){
        .folder = xstrdup(saved->folder),
        .spec = xstrdup(saved->spec),
        .step = weights_only ? 0 : saved->step,
        .weights_only = weights_only,
    };
    return 0;
}

int saved_origin(const struct saved *saved, bool weights_only, const struct job_config *job,
                 struct ancestor *out, struct texts *differences, struct error *err)
{
    struct manifest manifest = {0};
    struct graph *graph = NULL;
    *out = (struct ancestor){0};
    *differences = (struct texts){0};
    int rc = saved_read_origin(saved, weights_only, out, &manifest, err);
    if (rc == 0)
        rc = model_build(&job->model, job->train.dtype, &graph, err);
    if (rc == 0)
        rc = ancestor_compare(out, saved->job ? NULL : &manifest, job, graph, differences, err);
    if (rc == 0)
        rc = ancestor_leaves(out, job, err);
    graph_destroy(graph);
    manifest_finish(&manifest);
    return exit_of_errno(rc);
}
