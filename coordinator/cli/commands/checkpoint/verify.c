/* verify.c - `gimbal checkpoint verify`: is a checkpoint whole, and undamaged? Its exit status is
 * the answer. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/checkpoint/saved.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"

#include <stdlib.h>
#include <string.h>

static int verify_folder(const char *folder, struct error *err)
{
    const char *const words[] = {"--verify-checkpoint", folder, NULL};
    if (saved_read(words, -1, "its check", err) == EXIT_DONE)
        return EXIT_DONE;
    return error_prefix(err, EXIT_FAILED, "checkpoint '%s' cannot be trusted", folder);
}

/* Whether a job that runs has removed this checkpoint, because it keeps only the newest ones. */
static bool is_removed(const struct invocation *invocation, const char *job, const char *folder)
{
    Gimbal__GetJobReply *reply;
    struct error ignored;
    if (saved_ask(&invocation->common, job, &reply, &ignored) != EXIT_DONE)
        return false;
    bool listed = false;
    for (size_t i = 0; i < reply->n_checkpoints; i++)
        listed = listed || strcmp(reply->checkpoints[i]->folder, folder) == 0;
    message_free(&reply->base);
    return !listed;
}

static int verify_listed(const struct invocation *invocation, const char *job, const char *folder,
                         struct error *err)
{
    int code = verify_folder(folder, err);
    if (code == EXIT_DONE || !is_removed(invocation, job, folder))
        return code;
    if (!invocation->common.quiet)
        fprintf(stderr, "checkpoint '%s' was removed for newer ones before it was checked\n",
                folder);
    return EXIT_DONE;
}

/* Verify a folder by its path, or all checkpoints that are listed of a job. */
static int run(const struct invocation *invocation, struct error *err)
{
    const char *what = invocation->arguments[0];
    Gimbal__GetJobReply *reply;
    if (named_path(what)) {
        int code = saved_find(what, err);
        return code == EXIT_DONE ? verify_folder(what, err) : code;
    }
    int code = saved_ask(&invocation->common, what, &reply, err);
    if (code != EXIT_DONE)
        return code;
    for (size_t i = 0; i < reply->n_checkpoints && code == EXIT_DONE; i++)
        code = verify_listed(invocation, what, reply->checkpoints[i]->folder, err);
    if (reply->n_checkpoints == 0 && !invocation->common.quiet)
        fprintf(stderr, "%s has no checkpoint\n", what);
    message_free(&reply->base);
    return code;
}

const struct command command_checkpoint_verify = {
    .name = "checkpoint verify",
    .summary = "Check everything in checkpoints against its checksums",
    .arguments = "JOB|DIRECTORY",
    .arguments_min = 1,
    .arguments_max = 1,
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
