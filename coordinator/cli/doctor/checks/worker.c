/* worker.c - everything that `gimbal-worker --doctor` says of this machine, with the settings that
 * a worker would have here: from its file, the environment, and the arguments after "--". */
#include "coordinator/cli/doctor/visit.h"

#include "common/base/memory.h"
#include "coordinator/cli/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_MS 120000 /* it starts executors, which load libraries */
#define ARGUMENTS_OWN 6

/* Ends with NULL; the caller frees the array. */
static char **arguments_of(const struct visit *visit, char *program)
{
    const struct invocation *invocation = visit->invocation;
    const struct common *common = &invocation->common;
    size_t count = 0;
    char **words = xcalloc(ARGUMENTS_OWN + (size_t)invocation->argument_count + 1, sizeof *words);
    words[count++] = program;
    words[count++] = "--doctor";
    if (common->address) {
        words[count++] = "--coordinator";
        words[count++] = (char *)common->address;
    }
    if (common->tls && visit_as_worker(common)) {
        words[count++] = "--tls";
        words[count++] = (char *)common->tls;
    }
    for (int i = 0; i < invocation->argument_count; i++)
        words[count++] = invocation->arguments[i];
    return words;
}

/* GIMBAL_TLS is a setting of both programs, and a user's value is not for the worker. */
static int start(const struct visit *visit, char *program, int output, struct child *child,
                 struct error *err)
{
    static const char *const of_user[] = {"GIMBAL_TLS", NULL};
    const struct common environment = {0};
    char **words = arguments_of(visit, program);
    int rc = child_start_without(words, visit_as_user(&environment) ? of_user : NULL, output,
                                 STDERR_FILENO, child, err);
    free(words);
    return rc;
}

static int run(const struct visit *visit, char *program, int output, struct error *err)
{
    struct child child = {0};
    char end[64];
    int rc = start(visit, program, output, &child, err);
    if (rc < 0)
        return rc;
    if (!child_wait(&child, PATIENCE_MS)) {
        child_stop(&child, 0);
        return error_set(err, -ETIMEDOUT, "%s has not answered within %d s", program,
                         PATIENCE_MS / 1000);
    }
    if (child.status != 0)
        return error_set(err, -EIO, "%s: %s", program, child_print_end(&child, end, sizeof end));
    return 0;
}

/* Its report as JSON, owned by the caller. */
static int ask(const struct visit *visit, json_t **out, struct error *err)
{
    char *program = NULL;
    json_error_t where;
    int output = memfd_create("doctor", MFD_CLOEXEC);
    int rc = output < 0 ? error_set(err, -errno, "memfd_create: %s", strerror(errno))
                        : sibling_path("gimbal-worker", &program, err);
    if (rc == 0)
        rc = run(visit, program, output, err);
    if (rc == 0 && lseek(output, 0, SEEK_SET) == 0 &&
        !(*out = json_loadfd(output, JSON_DISABLE_EOF_CHECK, &where)))
        rc = error_set(err, -EPROTO, "%s did not answer with JSON: %s", program, where.text);
    if (output >= 0)
        close(output);
    free(program);
    return rc;
}

static void look(void *scene, struct findings *out)
{
    struct visit *visit = scene;
    json_t *answer = NULL;
    struct error err;
    int rc = ask(visit, &answer, &err);
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

const struct doctor_check visit_worker = {
    .name = "worker",
    .about = "whether gimbal-worker can be started",
    .cb = look,
};
