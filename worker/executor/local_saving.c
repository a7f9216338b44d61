/* local_saving.c - a listing and a meeting in this process, behind the interface of the saver. */
#include "worker/executor/local_saving.h"

#include "common/base/memory.h"
#include "common/checkpoint/name.h"
#include "worker/checkpoint/listing.h"
#include "worker/collectives/meeting.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct local_saving {
    struct session *session; /* lent */
    char *root, *job, *start;
    uint64_t start_step;
    struct listing *listing;
    struct meeting *meeting;
    struct rendezvous rendezvous;
};

static int refuse_none(const struct local_saving *saving, struct error *err)
{
    return error_set(err, -ENOENT, "'%s' lists no checkpoint to continue from: leave out --resume",
                     saving->root);
}

/* Find the checkpoint to start from, or refuse. */
static int find_start(struct local_saving *saving, bool resume, struct error *err)
{
    size_t count;
    listing_names(saving->listing, &count);
    if (resume && count == 0)
        return refuse_none(saving, err);
    if (!resume && count > 0)
        return error_set(err, -EINVAL,
                         "'%s' already has checkpoints: continue from the newest with --resume, "
                         "or name another folder",
                         saving->root);
    return resume ? listing_newest(saving->listing, &saving->start, &saving->start_step, err) : 0;
}

int local_saving_open(const struct job_config *job, bool resume, struct session *session,
                      struct local_saving **out, struct error *err)
{
    struct local_saving *saving = xcalloc(1, sizeof *saving);
    saving->session = session;
    saving->root = checkpoint_root_local(job->checkpoint.dir, job->name);
    saving->job = xstrdup(job->name);
    saving->meeting = meeting_create(MEETING_TAKEN);
    saving->rendezvous = meeting_rendezvous(saving->meeting);
    /* A folder that is misspelt is not made. */
    bool none = resume && access(saving->root, F_OK) < 0 && errno == ENOENT;
    int rc = none ? refuse_none(saving, err)
                  : listing_open(saving->root, (size_t)job->checkpoint.keep, &saving->listing, err);
    if (rc == 0)
        rc = find_start(saving, resume, err);
    if (rc < 0) {
        local_saving_close(saving);
        return rc;
    }
    *out = saving;
    return 0;
}

void local_saving_close(struct local_saving *saving)
{
    if (!saving)
        return;
    listing_close(saving->listing);
    meeting_destroy(saving->meeting);
    free(saving->start);
    free(saving->job);
    free(saving->root);
    free(saving);
}

const char *local_saving_start(const struct local_saving *saving, uint64_t *step)
{
    *step = saving->start_step;
    return saving->start;
}

/* saver_config.staged: list the checkpoint here, as there is nobody else to do it. */
static int staged(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    struct local_saving *saving = context;
    int rc = report->failure ? 0 : listing_add(saving->listing, report->name, err);
    if (rc < 0)
        return rc;
    session_tell_staged(saving->session, report);
    size_t count;
    const char *const *names = listing_names(saving->listing, &count);
    listed->names = xcalloc(count, sizeof(char *));
    for (; listed->count < count; listed->count++)
        listed->names[listed->count] = xstrdup(names[listed->count]);
    return 0;
}

static void complain(void *context, const char *words)
{
    session_complain(((struct local_saving *)context)->session, words);
}

static void abandon(void *context)
{
    meeting_abandon(((struct local_saving *)context)->meeting);
}

struct saver_config local_saving_config(struct local_saving *saving)
{
    return (struct saver_config){
        .root = saving->root,
        .origin = {.job = saving->job, .epoch = listing_epoch(saving->listing)},
        .rendezvous = &saving->rendezvous,
        .context = saving,
        .staged = staged,
        .complain = complain,
        .abandon = abandon,
    };
}
