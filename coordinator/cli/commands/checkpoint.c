/* checkpoint.c - `gimbal checkpoint list JOB`, `gimbal checkpoint verify JOB|DIR`: what a job can
 * go on from, and whether it is undamaged. Reading tensors is the executor's: it runs as a child.
 */
#include "coordinator/cli/child.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/sibling.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void print_list(const struct common *common, const Gimbal__GetJobReply *job)
{
    json_t *items = json_array();
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        const Gimbal__Checkpoint *checkpoint = job->checkpoints[i];
        json_array_append_new(
            items,
            output_object(
                "Checkpoint",
                json_pack("{s:I, s:I, s:s, s:I, s:f, s:b}", "step", (json_int_t)checkpoint->step,
                          "epoch", (json_int_t)checkpoint->epoch, "folder", checkpoint->folder,
                          "bytes", (json_int_t)checkpoint->bytes, "unix_s",
                          (double)checkpoint->unix_ms / 1e3, "damaged", checkpoint->damaged)));
    }
    output_print_list((enum output)common->output, "CheckpointList", "checkpoints", items, stdout);
}

static const char *print_time(char *out, size_t size, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(out, size, "%Y-%m-%d %H:%M:%S", &local);
    return out;
}

static void print_table(const struct common *common, const Gimbal__GetJobReply *job)
{
    static const struct column columns[] = {
        {.name = "STEP", .right = true},
        {.name = "EPOCH", .right = true},
        {.name = "SIZE", .right = true},
        {.name = "LISTED"},
        {.name = "STATE"},
        {.name = "FOLDER"},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        const Gimbal__Checkpoint *checkpoint = job->checkpoints[i];
        char size[32], when[32];
        table_add(table, "%" PRIu64, checkpoint->step);
        table_add(table, "%" PRIu64, checkpoint->epoch);
        table_add(table, "%s", units_print_bytes(size, sizeof size, (double)checkpoint->bytes));
        table_add(table, "%s", print_time(when, sizeof when, checkpoint->unix_ms));
        table_add(table, "%s", checkpoint->damaged ? "damaged" : "");
        table_add(table, "%s", checkpoint->folder);
    }
    table_print(table, common->output == OUTPUT_WIDE, !common->no_headers, stdout);
    table_destroy(table);
}

/* The reply is the caller's. */
static int ask(const struct invocation *invocation, const char *job, Gimbal__GetJobReply **out,
               struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.job = (char *)job;
    int code =
        client_call_once(&invocation->common, COORDINATOR_GET_JOB, &request.base, &reply, err);
    if (code == EXIT_DONE)
        *out = (Gimbal__GetJobReply *)reply;
    return code;
}

static int list(const struct invocation *invocation, const char *job, struct error *err)
{
    Gimbal__GetJobReply *reply;
    int code = ask(invocation, job, &reply, err);
    if (code != EXIT_DONE)
        return code;
    if (invocation->common.output >= OUTPUT_JSON)
        print_list(&invocation->common, reply);
    else
        print_table(&invocation->common, reply);
    if (reply->n_checkpoints == 0 && invocation->common.output < OUTPUT_JSON &&
        !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", job);
    message_free(&reply->base);
    return EXIT_DONE;
}

/* What the child finds it prints itself, and why it refuses. */
static int verify_folder(const char *folder, struct error *err)
{
    char *executor, ended[64];
    struct child child;
    if (sibling_path("gimbal-executor", &executor, err) < 0)
        return EXIT_FAILED;
    char *const argv[] = {executor, (char *)"--verify-checkpoint", (char *)folder, NULL};
    int rc = child_start(argv, NULL, 0, STDOUT_FILENO, &child, err);
    free(executor);
    if (rc < 0)
        return EXIT_FAILED;
    child_wait(&child, -1);
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
        return EXIT_DONE;
    error_set(err, 0, "checkpoint '%s' is not to be trusted: its check ended with %s", folder,
              child_print_end(&child, ended, sizeof ended));
    return EXIT_FAILED;
}

static bool has_manifest(const char *folder)
{
    char *path = xasprintf("%s/manifest.json", folder);
    bool has = access(path, F_OK) == 0 || errno != ENOENT;
    free(path);
    return has;
}

/* What a person names may be the folder above, or none. */
static int verify_path(const char *folder, struct error *err)
{
    if (has_manifest(folder))
        return verify_folder(folder, err);
    error_set(err, 0,
              "'%s' has no manifest.json: name the folder of one step, as in "
              ".../step-200.epoch-1",
              folder);
    return EXIT_INPUT;
}

/* A folder by its path, or all that are listed of a job. */
static int verify(const struct invocation *invocation, const char *what, struct error *err)
{
    Gimbal__GetJobReply *reply;
    if (invocation->common.output >= OUTPUT_JSON) {
        error_set(err, 0, "verify prints no JSON: its exit status is the answer");
        return EXIT_USAGE;
    }
    if (strchr(what, '/'))
        return verify_path(what, err);
    int code = ask(invocation, what, &reply, err);
    if (code != EXIT_DONE)
        return code;
    for (size_t i = 0; i < reply->n_checkpoints && code == EXIT_DONE; i++)
        code = verify_folder(reply->checkpoints[i]->folder, err);
    if (reply->n_checkpoints == 0 && !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", what);
    message_free(&reply->base);
    return code;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const char *verb = invocation->arguments[0], *what = invocation->arguments[1];
    if (strcmp(verb, "list") == 0)
        return list(invocation, what, err);
    if (strcmp(verb, "verify") == 0)
        return verify(invocation, what, err);
    error_set(err, 0, "unknown '%s': list JOB, or verify JOB|DIRECTORY", verb);
    return EXIT_USAGE;
}

const struct command command_checkpoint = {
    .name = "checkpoint",
    .summary = "List the checkpoints of a job, or verify that they are undamaged",
    .arguments = "list JOB | verify JOB|DIRECTORY",
    .arguments_min = 2,
    .arguments_max = 2,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
