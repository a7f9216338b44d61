/* machine.c - checks of this machine: everything that `gimbal-worker --doctor` says of it, with the
 * settings that a worker would have here, from its file, the environment, and the arguments after
 * "--"; executors whose worker is gone; and the paths that a job names, which each of its nodes
 * needs. */
#include "coordinator/cli/commands/doctor/doctor.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/leftovers.h"
#include "coordinator/cli/process.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define ARGUMENTS_OWN 5

/* The worker's arguments, ending with NULL; the caller frees the array. */
static const char **worker_arguments_of(const struct visit *visit)
{
    const struct invocation *invocation = visit->invocation;
    const struct common *common = &invocation->common;
    size_t count = 0;
    const char **words =
        xcalloc(ARGUMENTS_OWN + (size_t)invocation->argument_count + 1, sizeof *words);
    words[count++] = "--doctor";
    if (common->address) {
        words[count++] = "--coordinator";
        words[count++] = common->address;
    }
    if (common->tls && client_role(common) == CLIENT_WORKER) {
        words[count++] = "--tls";
        words[count++] = common->tls;
    }
    for (int i = 0; i < invocation->argument_count; i++)
        words[count++] = invocation->arguments[i];
    return words;
}

/* Its report as JSON, owned by the caller. GIMBAL_TLS is a setting of both programs, and a user's
 * value is not for the worker. */
static int worker_ask(const struct visit *visit, json_t **out, struct error *err)
{
    static const char *const of_user[] = {"GIMBAL_TLS", NULL};
    const struct common environment = {0};
    struct process_answer answer;
    json_error_t where;
    char end[64];
    const char **words = worker_arguments_of(visit);
    int rc = process_ask("gimbal-worker", words,
                         client_role(&environment) == CLIENT_USER ? of_user : NULL, &answer, err);
    free(words);
    if (rc < 0)
        return rc;
    fputs(answer.errors, stderr);
    if (answer.status != 0)
        rc = error_set(
            err, -EIO, "%s: %s", answer.program,
            process_print_end(&(struct process){.status = answer.status}, end, sizeof end));
    else if (!(*out = json_loads(answer.output, JSON_DISABLE_EOF_CHECK, &where)))
        rc = error_set(err, -EPROTO, "%s did not answer with JSON: %s", answer.program, where.text);
    process_answer_finish(&answer);
    return rc;
}

static void check_worker(void *scene, struct findings *out)
{
    struct visit *visit = scene;
    json_t *answer = NULL;
    struct error err;
    int rc = worker_ask(visit, &answer, &err);
    if (rc == 0)
        rc = findings_add_json(out, json_object_get(answer, "findings"), &err);
    if (rc < 0)
        finding_block(out, "gimbal-worker of the same release, installed beside gimbal", "%s",
                      err.text);
    const char *node = json_string_value(json_object_get(answer, "node"));
    const json_t *report = json_object_get(answer, "report");
    visit->node = node ? xstrdup(node) : NULL;
    if (json_is_object(report))
        hardware_report_from_json(report, &visit->report, NULL);
    json_decref(answer);
}

const struct doctor_check doctor_worker = {
    .name = "worker",
    .about = "whether gimbal-worker can be started",
    .cb = check_worker,
};

static void check_leftovers(void *scene, struct findings *out)
{
    (void)scene;
    char *left = leftovers_orphans(), *rest = NULL;
    if (!left)
        finding_ok(out, "no executor has outlived its worker");
    for (char *line = left ? strtok_r(left, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        finding_warn(out,
                     "'kill -9' it; if that does not help, it hangs in a driver: see dmesg, and "
                     "restart the machine",
                     "%s has no worker any more, but still holds its cores and memory", line);
    free(left);
}

const struct doctor_check doctor_leftovers = {
    .name = "leftovers",
    .about = "executors that outlived their worker",
    .cb = check_leftovers,
};

static void job_look_at(const char *key, const char *path, struct findings *out)
{
    if (access(path, R_OK) == 0)
        finding_ok(out, "%s: %s is here", key, path);
    else
        finding_block(out, "the same path on every node, such as one on a shared file system",
                      "%s: %s: %s", key, path, strerror(errno));
}

static void job_look_at_texts(const char *key, const struct texts *texts, struct findings *out)
{
    for (size_t i = 0; i < texts->count; i++)
        job_look_at(key, texts->items[i], out);
}

/* A dataset of Megatron-LM's may be named by what its two files begin with. */
static void job_look_at_tokens(const char *key, const struct texts *texts, struct findings *out)
{
    for (size_t i = 0; i < texts->count; i++) {
        const char *path = texts->items[i];
        char *index = xasprintf("%s.idx", path), *tokens = xasprintf("%s.bin", path);
        bool both = access(path, F_OK) < 0 && access(index, F_OK) == 0;
        job_look_at(key, both ? index : path, out);
        if (both)
            job_look_at(key, tokens, out);
        free(index);
        free(tokens);
    }
}

/* Write, sync and remove a file, as is done for parts of a checkpoint. */
static int folder_try(const char *folder, struct error *err)
{
    char *path = xasprintf("%s/doctor-%d", folder, (int)getpid());
    int rc = file_write(path, "this file may go\n", 0600, err);
    unlink(path);
    free(path);
    return rc;
}

bool visit_folder(const char *key, const char *folder, struct findings *out)
{
    struct statvfs fs;
    struct error err;
    char room[32];
    if (folder_try(folder, &err) < 0) {
        finding_block(out,
                      "an existing folder that all nodes share, with room, that the worker's user "
                      "may write",
                      "%s: %s", key, err.text);
        return false;
    }
    if (statvfs(folder, &fs) == 0)
        finding_ok(out, "%s: %s can be written, and has room for %s", key, folder,
                   units_print_bytes(room, sizeof room, (double)fs.f_bavail * (double)fs.f_frsize));
    return true;
}

static void check_job(void *scene, struct findings *out)
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
    job_look_at_texts("data.text", &job->data.text, out);
    job_look_at_tokens("data.tokens", &job->data.tokens, out);
    if (job->data.tokens.count)
        job_look_at_tokens("eval.data", &job->eval.data, out);
    else
        job_look_at_texts("eval.data", &job->eval.data, out);
    job_look_at_texts("data.images", &job->data.images, out);
    if (job->model.weights)
        job_look_at_texts("model.weights",
                          &(struct texts){.items = &job->model.weights, .count = 1}, out);
    if (job->checkpoint.dir)
        visit_folder("checkpoint.dir", job->checkpoint.dir, out);
    job_config_destroy(job);
    free(text);
}

const struct doctor_check doctor_job = {
    .name = "job",
    .about = "the files and folders of the job file, on this machine",
    .cb = check_job,
};
