/* export.c - `gimbal checkpoint export`: the model of a checkpoint in the form that the package
 * transformers reads. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/checkpoint/saved.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobfile.h"
#include "coordinator/cli/named.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct export_values {
    const char *file;
    int64_t step; /* -1: not given */
};

static const struct flag export_flags[] = {
    {"file", 'f', FLAG_TEXT, offsetof(struct export_values, file), "FILE",
     "with a DIRECTORY: the job file of what it is a checkpoint of"},
    {"step", 0, FLAG_NUMBER, offsetof(struct export_values, step), "N",
     "with a JOB: the checkpoint of this step; else the newest that is undamaged", .standard = -1},
    {.name = NULL},
};

static int export_folder(const char *folder, const char *job, int keep, const char *out,
                         struct error *err)
{
    const char *const words[] = {"--export-checkpoint", folder, "--job", job, "--out", out, NULL};
    return saved_read(words, keep, "the export", err);
}

static int export_path(const struct export_values *values, const char *folder, const char *out,
                       struct error *err)
{
    struct job_config *job;
    char *text;
    if (values->step >= 0)
        return error_set(err, EXIT_USAGE, "--step goes with a JOB: a folder is of one step");
    if (!values->file)
        return error_set(err, EXIT_USAGE,
                         "needs the job file of what '%s' is a checkpoint of: -f job.yaml", folder);
    int code = saved_find(folder, err);
    if (code == EXIT_DONE)
        code = jobfile_load(values->file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    free(text);
    job_config_destroy(job);
    return export_folder(folder, values->file, -1, out, err);
}

/* The listed ones come with the newest first. */
static int choose(const Gimbal__GetJobReply *job, const char *name, int64_t step,
                  const Gimbal__Checkpoint **out, struct error *err)
{
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        *out = job->checkpoints[i];
        if (step < 0 ? !(*out)->damaged : (*out)->step == (uint64_t)step)
            return EXIT_DONE;
    }
    return step < 0 ? error_set(err, EXIT_INPUT, "%s has no undamaged checkpoint", name)
                    : error_set(err, EXIT_INPUT,
                                "%s has no checkpoint of step %" PRId64
                                ": 'gimbal checkpoint list %s' shows them",
                                name, step, name);
}

/* The job file as the coordinator keeps it, in a file that no crash leaves behind. */
static int job_file(const char *yaml, int *out, struct error *err)
{
    size_t size = strlen(yaml);
    *out = memfd_create("job.yaml", MFD_CLOEXEC);
    ssize_t written = *out < 0 ? -1 : write(*out, yaml, size);
    if (written == (ssize_t)size)
        return EXIT_DONE;
    if (*out >= 0)
        close(*out);
    return error_set(err, EXIT_FAILED, "keep the job file in memory: %s",
                     strerror(written < 0 ? errno : ENOSPC));
}

static int export_job(const struct invocation *invocation, const char *job, const char *out,
                      struct error *err)
{
    const struct export_values *values = invocation->values;
    const Gimbal__Checkpoint *checkpoint = NULL;
    Gimbal__GetJobReply *reply;
    char path[32];
    int fd = -1;
    if (values->file)
        return error_set(err, EXIT_USAGE, "-f goes with a DIRECTORY: %s has its own job file", job);
    int code = saved_ask(&invocation->common, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    code = choose(reply, job, values->step, &checkpoint, err);
    if (code == EXIT_DONE && saved_find(checkpoint->folder, err) != EXIT_DONE)
        code = error_set(err, EXIT_INPUT,
                         "'%s' is not in reach here: run this where the nodes of %s have it",
                         checkpoint->folder, job);
    if (code == EXIT_DONE)
        code = job_file(reply->spec ? reply->spec->yaml : "", &fd, err);
    if (code == EXIT_DONE) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        code = export_folder(checkpoint->folder, path, fd, out, err);
        close(fd);
    }
    message_free(&reply->base);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const char *what = invocation->arguments[0], *out = invocation->arguments[1];
    return named_path(what) ? export_path(invocation->values, what, out, err)
                            : export_job(invocation, what, out, err);
}

const struct command command_checkpoint_export = {
    .name = "checkpoint export",
    .summary = "Write the model of a checkpoint as transformers reads it",
    .arguments = "JOB|DIRECTORY OUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .flags = export_flags,
    .values_size = sizeof(struct export_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
