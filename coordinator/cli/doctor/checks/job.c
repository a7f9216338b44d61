/* job.c - the paths on this machine that a job names: each of its nodes needs them. */
#include "coordinator/cli/doctor/visit.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void look_at(const char *key, const char *path, struct findings *out)
{
    if (access(path, R_OK) == 0)
        finding_ok(out, "%s: %s is here", key, path);
    else
        finding_block(out, "the same path on every node, such as one on a shared file system",
                      "%s: %s: %s", key, path, strerror(errno));
}

static void look_at_texts(const char *key, const struct texts *texts, struct findings *out)
{
    for (size_t i = 0; i < texts->count; i++)
        look_at(key, texts->items[i], out);
}

/* A dataset of Megatron-LM's may be named by what its two files begin with. */
static void look_at_tokens(const struct texts *texts, struct findings *out)
{
    for (size_t i = 0; i < texts->count; i++) {
        const char *path = texts->items[i];
        char *index = xasprintf("%s.idx", path), *tokens = xasprintf("%s.bin", path);
        bool both = access(path, F_OK) < 0 && access(index, F_OK) == 0;
        look_at("data.tokens", both ? index : path, out);
        if (both)
            look_at("data.tokens", tokens, out);
        free(index);
        free(tokens);
    }
}

/* Write, sync and remove a file, as is done for parts of a checkpoint. */
static int try_folder(const char *folder, struct error *err)
{
    char *path = xasprintf("%s/doctor-%d", folder, (int)getpid());
    int rc = file_write(path, "this file may go\n", 0600, err);
    unlink(path);
    free(path);
    return rc;
}

static void look_at_checkpoints(const char *folder, struct findings *out)
{
    struct statvfs fs;
    struct error err;
    char room[32];
    if (try_folder(folder, &err) < 0)
        finding_block(out,
                      "an existing folder that all nodes share, with room, that the worker's user "
                      "may write",
                      "checkpoint.dir: %s", err.text);
    else if (statvfs(folder, &fs) == 0)
        finding_ok(out, "checkpoint.dir: %s can be written, and has room for %s", folder,
                   units_print_bytes(room, sizeof room, (double)fs.f_bavail * (double)fs.f_frsize));
}

static void look(void *scene, struct findings *out)
{
    const struct visit *visit = scene;
    struct job_config *job = NULL;
    struct error err = {""};
    char *text = NULL;
    if (!visit->job_path)
        return;
    if (jobfile_load(visit->job_path, &text, &job, &err) != 0) {
        finding_block(out, "a job file that 'gimbal plan' accepts", "%s", err.text);
        return;
    }
    look_at_texts("data.text", &job->data.text, out);
    look_at_tokens(&job->data.tokens, out);
    look_at_texts("data.images", &job->data.images, out);
    if (job->model.weights)
        look_at_texts("model.weights", &(struct texts){.items = &job->model.weights, .count = 1},
                      out);
    if (job->checkpoint.dir)
        look_at_checkpoints(job->checkpoint.dir, out);
    job_config_destroy(job);
    free(text);
}

const struct doctor_check visit_job = {
    .name = "job",
    .about = "the files and folders of the job file, on this machine",
    .cb = look,
};
