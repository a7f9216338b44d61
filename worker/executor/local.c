/* local.c - all ranks of a job as threads of this process, without a cluster.
 *
 * Nobody else lists its checkpoints or runs the ranks' rendezvous then, so both are here, behind
 * the interface of the saver. The list of checkpoints that count is the file ROOT/listed: a line
 * with the epoch, then the name of a checkpoint per line, newest first. Every start of the process
 * is an epoch, so that no folder gets a name that an earlier start has used. A lock keeps a second
 * process out. */
#include "worker/executor/modes.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/checkpoint/ancestor.h"
#include "common/config/folders.h"
#include "common/config/job.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/collectives/rendezvous.h"
#include "worker/executor/crew.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- the list of checkpoints ---- */

struct listing {
    char *root, *path;
    size_t keep;
    uint64_t epoch;
    char **names;
    size_t count, capacity;
    int lock;
};

static int listing_lock(struct listing *listing, struct error *err)
{
    char *path = xasprintf("%s/lock", listing->root);
    int rc = 0;
    listing->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (listing->lock < 0)
        rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
    else if (flock(listing->lock, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK
                 ? error_set(err, -EBUSY, "another process trains with the checkpoints of '%s'",
                             listing->root)
                 : error_set(err, -errno, "lock '%s': %s", path, strerror(errno));
    free(path);
    return rc;
}

static void listing_append(struct listing *listing, const char *name)
{
    listing->names =
        grow(listing->names, listing->count, &listing->capacity, sizeof *listing->names);
    listing->names[listing->count++] = xstrdup(name);
}

static int listing_parse(struct listing *listing, char *text, struct error *err)
{
    char *rest = NULL;
    const char *line = strtok_r(text, "\n", &rest);
    uint64_t step, epoch;
    if (!line || sscanf(line, "epoch %" SCNu64, &listing->epoch) != 1)
        return error_set(err, -EINVAL, "%s: the first line is not 'epoch NUMBER'", listing->path);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        if (!checkpoint_name_parse(line, &step, &epoch) || epoch > listing->epoch)
            return error_set(err, -EINVAL, "%s: '%.80s' is no checkpoint of epoch %" PRIu64,
                             listing->path, line, listing->epoch);
        listing_append(listing, line);
    }
    return 0;
}

static int listing_read(struct listing *listing, struct error *err)
{
    char *text;
    if (access(listing->path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int rc = file_read(listing->path, &text, err);
    if (rc < 0)
        return rc;
    rc = listing_parse(listing, text, err);
    free(text);
    return rc;
}

static int listing_write(const struct listing *listing, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "epoch %" PRIu64 "\n", listing->epoch);
    for (size_t i = 0; i < listing->count; i++)
        fprintf(out, "%s\n", listing->names[i]);
    fclose(out);
    int rc = file_write(listing->path, text, 0666, err);
    free(text);
    return rc;
}

static void listing_close(struct listing *listing)
{
    if (!listing)
        return;
    for (size_t i = 0; i < listing->count; i++)
        free(listing->names[i]);
    free(listing->names);
    if (listing->lock >= 0)
        close(listing->lock);
    free(listing->path);
    free(listing->root);
    free(listing);
}

/* Open the list, in a folder that is created if it is missing, and begin an epoch. At most `keep`
 * checkpoints stay listed. -EBUSY: another process trains there; -EINVAL: the file is no such list;
 * otherwise errors of the folder. */
static int listing_open(const char *root, size_t keep, struct listing **out, struct error *err)
{
    struct listing *listing = xcalloc(1, sizeof *listing);
    *listing = (struct listing){
        .root = xstrdup(root), .path = xasprintf("%s/listed", root), .keep = keep, .lock = -1};
    int rc = folder_make_mode(root, 0777, err);
    if (rc == 0)
        rc = listing_lock(listing, err);
    if (rc == 0)
        rc = listing_read(listing, err);
    listing->epoch++;
    if (rc == 0)
        rc = listing_write(listing, err);
    if (rc < 0) {
        listing_close(listing);
        return rc;
    }
    *out = listing;
    return 0;
}

/* Names of the listed checkpoints, newest first; lent until one is added. */
static const char *const *listing_names(const struct listing *listing, size_t *count)
{
    *count = listing->count;
    return (const char *const *)listing->names;
}

/* Add a checkpoint as the newest. Durable and atomic: after a crash there is the new list or the
 * old one. -errno: the list is as it was. */
static int listing_add(struct listing *listing, const char *name, struct error *err)
{
    listing_append(listing, name);
    size_t all = listing->count;
    char *newest = listing->names[all - 1];
    memmove(listing->names + 1, listing->names, (all - 1) * sizeof *listing->names);
    listing->names[0] = newest;
    listing->count = all > listing->keep ? listing->keep : all;
    int rc = listing_write(listing, err);
    if (rc < 0) {
        free(newest);
        memmove(listing->names, listing->names + 1, (all - 1) * sizeof *listing->names);
        listing->count = all - 1;
        return rc;
    }
    while (all > listing->count)
        free(listing->names[--all]);
    return 0;
}

/* Find the newest listed checkpoint that is complete and undamaged: *folder is its path, which the
 * caller frees. It is NULL if none was ever listed. Damaged ones are logged; -EBADMSG: all of them
 * are. */
static int listing_newest(const struct listing *listing, char **folder, struct error *err)
{
    *folder = NULL;
    for (size_t i = 0; i < listing->count; i++) {
        char *path = xasprintf("%s/%s", listing->root, listing->names[i]);
        if (checkpoint_verify(path, NULL, err) == 0) {
            *folder = path;
            return 0;
        }
        log_line(LOG_WARN, "training cannot continue from the checkpoint '%s': %s", path,
                 err->text);
        free(path);
    }
    return listing->count == 0 ? 0
                               : error_prefix(err, -EBADMSG,
                                              "no undamaged checkpoint is left in '%s'; of the "
                                              "oldest",
                                              listing->root);
}

/* ---- what the saver needs ---- */

struct local_saving {
    struct session *session; /* lent */
    char *root, *job, *start;
    struct listing *listing;
    struct local_rendezvous *meeting;
    struct rendezvous rendezvous;
};

static int local_saving_refuse(const struct local_saving *saving, struct error *err)
{
    return error_set(err, -ENOENT, "'%s' lists no checkpoint to continue from: leave out --resume",
                     saving->root);
}

/* Find the checkpoint to start from, or refuse. */
static int local_saving_find(struct local_saving *saving, bool resume, struct error *err)
{
    size_t count;
    listing_names(saving->listing, &count);
    if (resume && count == 0)
        return local_saving_refuse(saving, err);
    if (!resume && count > 0)
        return error_set(err, -EINVAL,
                         "'%s' already has checkpoints: continue from the newest with --resume, "
                         "or name another folder",
                         saving->root);
    return resume ? listing_newest(saving->listing, &saving->start, err) : 0;
}

static void local_saving_close(struct local_saving *saving)
{
    if (!saving)
        return;
    listing_close(saving->listing);
    local_rendezvous_destroy(saving->meeting);
    free(saving->start);
    free(saving->job);
    free(saving->root);
    free(saving);
}

/* Open the checkpoints of a job in the folder `root`. With `resume`, training continues from the
 * newest checkpoint listed there (-ENOENT: there is none); without, there must be none (-EINVAL).
 * Otherwise errors of listing_open and listing_newest. Lends the session. */
static int local_saving_open(const char *root, const struct job_config *job, bool resume,
                             struct session *session, struct local_saving **out, struct error *err)
{
    struct local_saving *saving = xcalloc(1, sizeof *saving);
    saving->session = session;
    saving->root = xstrdup(root);
    saving->job = xstrdup(job->name);
    saving->meeting = local_rendezvous_create(RENDEZVOUS_TAKEN);
    saving->rendezvous = local_rendezvous_lend(saving->meeting);
    /* A folder that is misspelt is not made. */
    bool none = resume && access(saving->root, F_OK) < 0 && errno == ENOENT;
    int rc = none ? local_saving_refuse(saving, err)
                  : listing_open(saving->root, (size_t)job->checkpoint.keep, &saving->listing, err);
    if (rc == 0)
        rc = local_saving_find(saving, resume, err);
    if (rc < 0) {
        local_saving_close(saving);
        return rc;
    }
    *out = saving;
    return 0;
}

/* saver_config.staged: list the checkpoint here, as there is nobody else to do it. */
static int local_saving_staged(void *context, const struct saver_report *report,
                               struct saver_listed *listed, struct error *err)
{
    struct local_saving *saving = context;
    struct saver_report told = *report;
    size_t count;
    int rc = report->failure ? 0 : listing_add(saving->listing, report->name, err);
    if (rc < 0) {
        told.failure = err->text;
        told.no_space = rc == -ENOSPC || rc == -EDQUOT;
    }
    session_tell_staged(saving->session, &told);
    if (rc < 0)
        return 1;
    const char *const *names = listing_names(saving->listing, &count);
    listed->names = xcalloc(count, sizeof(char *));
    for (; listed->count < count; listed->count++)
        listed->names[listed->count] = xstrdup(names[listed->count]);
    return 0;
}

static int local_saving_unsaved(void *context, struct error *err)
{
    return session_unsaved(((struct local_saving *)context)->session, err);
}

static void local_saving_complain(void *context, const char *words)
{
    session_complain(((struct local_saving *)context)->session, words);
}

static void local_saving_abandon(void *context)
{
    local_rendezvous_abandon(((struct local_saving *)context)->meeting);
}

/* The settings for a trainer; everything in them is lent, and so is the text of the job file. */
static struct saver_config local_saving_config(struct local_saving *saving, const char *spec)
{
    return (struct saver_config){
        .root = saving->root,
        .origin = {.job = saving->job, .spec = spec, .epoch = saving->listing->epoch},
        .rendezvous = &saving->rendezvous,
        .context = saving,
        .staged = local_saving_staged,
        .unsaved = local_saving_unsaved,
        .complain = local_saving_complain,
        .abandon = local_saving_abandon,
    };
}

/* ---- the mode ---- */

/* What belongs to this mode alone, to be closed by local_close(). */
struct local {
    char *spec;                  /* text of the job file */
    struct local_saving *saving; /* NULL: nothing is saved */
    struct ancestor origin;      /* folder NULL: it begins anew */
};

static void local_close(struct local *local)
{
    local_saving_close(local->saving);
    ancestor_finish(&local->origin);
    free(local->spec);
}

static int local_read_job(const char *path, struct local *local, struct work *work,
                          struct error *err)
{
    int rc = file_read(path, &local->spec, err);
    return rc == 0 ? job_config_parse(local->spec, strlen(local->spec), path, &work->job, err) : rc;
}

/* Set up the checkpoints of training without a cluster. */
static int local_set_saving(struct local *local, const struct executor_options *options,
                            struct work *work, struct error *err)
{
    if (!options->checkpoint)
        return options->resume ? error_set(err, -EINVAL, "no --checkpoint to resume from") : 0;
    int rc = work_fault(local_saving_open(options->checkpoint, work->job, options->resume,
                                          work->session, &local->saving, err));
    if (rc < 0)
        return rc;
    work->saving = local_saving_config(local->saving, local->spec);
    session_saves(work->session, job_saving_patience_s(work->job, true));
    return 0;
}

/* Tell each of them, whoever asked for it: nothing that was changed is followed silently. */
static void local_tell(const struct ancestor *origin, const struct texts *differences)
{
    log_line(LOG_INFO, "training goes on after step %" PRIu64 " of '%s'%s", origin->step,
             origin->folder, origin->weights_only ? ", with its weights only" : "");
    for (size_t i = 0; i < differences->count; i++)
        log_line(LOG_WARN, "not as in the checkpoint: %s", differences->items[i]);
}

/* Set up what to go on from: the newest checkpoint of an earlier start, or any other. */
static int local_set_origin(struct local *local, const struct executor_options *options,
                            struct work *work, struct error *err)
{
    const char *folder = options->from   ? options->from
                         : local->saving ? local->saving->start
                                         : NULL;
    struct manifest manifest;
    struct texts differences = {0};
    if (!folder)
        return 0;
    int rc = ancestor_read(folder, options->weights_only, &local->origin, &manifest, err);
    if (rc < 0)
        return rc;
    const struct ancestor *origin = &local->origin;
    rc = ancestor_compare(origin, &manifest, work->job, work->graph, &differences, err);
    if (rc == 0)
        local_tell(origin, &differences);
    struct trainer_config *trainer = &work->trainer;
    trainer->start = origin->weights_only ? NULL : origin->folder;
    trainer->weights = origin->weights_only ? origin->folder : NULL;
    trainer->start_age = (struct move_age){.step = origin->step};
    trainer->shift = origin->samples - origin->step * (uint64_t)plan_global_batch(work->plan);
    session_stepped(work->session, origin->step);
    ancestor_forget(&differences);
    manifest_finish(&manifest);
    return work_fault(rc);
}

/* What the job names, and what it goes on from. */
static int local_open(struct local *local, const struct executor_options *options,
                      struct work *work, struct error *err)
{
    int rc = local_read_job(options->job, local, work, err);
    if (rc == 0)
        rc = plan_load(options->plan, &work->plan, err);
    if (rc == 0)
        rc = work_open(work, err);
    if (rc == 0)
        session_reads(work->session, work->data, NULL, NULL);
    if (rc == 0)
        rc = plan_check(work->plan, work->graph, err);
    if (rc == 0 && plan_ranks(work->plan) > options->local)
        rc = error_set(err, -EINVAL, "the plan has %d ranks, --local allows %d",
                       plan_ranks(work->plan), options->local);
    if (rc == 0)
        rc = local_set_saving(local, options, work, err);
    return rc == 0 ? local_set_origin(local, options, work, err) : rc;
}

int executor_local(const struct executor_options *options, struct error *err)
{
    struct work work = {.session = session_create(options->channel),
                        .trainer.collectives = &collectives_local};
    struct local local = {0};
    static cpu_set_t sets[CPUSETS_MAX];
    session_listen(work.session);
    session_name(work.session, "local", 1);
    int rc = device_open(options->device ? options->device : "cpu", &work.trainer.device, err);
    if (rc == 0)
        rc = local_open(&local, options, &work, err);
    if (rc == 0)
        rc = cpuset_devices(options->devices, options->local, sets, err);
    if (rc < 0) {
        crew_refuse(&work, 0, rc, err);
        local_close(&local);
        return rc;
    }

    int count = plan_ranks(work.plan);
    struct member *members = xcalloc((size_t)count, sizeof *members);
    work.hub = local_hub_create(count);
    work.reporter = session_reporter(work.session, false);
    for (int i = 0; i < count; i++)
        members[i] = (struct member){.work = &work, .rank = i, .cores = sets[i], .bind = true};
    rc = crew_run(&work, members, count, err);
    free(members);
    work_close(&work);
    local_close(&local);
    return rc;
}
