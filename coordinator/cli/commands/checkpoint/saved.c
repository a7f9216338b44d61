/* saved.c - asking for them, and a child that reads them. */
#include "coordinator/cli/commands/checkpoint/saved.h"

#include "common/base/memory.h"
#include "coordinator/cli/child.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/sibling.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 8

int saved_ask(const struct common *common, const char *job, Gimbal__GetJobReply **out,
              struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *reply;
    request.job = (char *)job;
    int code = client_call_once(common, COORDINATOR_GET_JOB, &request.base, &reply, err);
    if (code == EXIT_DONE)
        *out = (Gimbal__GetJobReply *)reply;
    return code;
}

/* What a person names may be the folder above, or none. */
int saved_find(const char *folder, struct error *err)
{
    char *path = xasprintf("%s/manifest.json", folder);
    bool has = access(path, F_OK) == 0 || errno != ENOENT;
    free(path);
    if (has)
        return EXIT_DONE;
    return error_set(err, EXIT_INPUT,
                     "'%s' has no manifest.json: name the folder of one step, as in "
                     ".../step-200.epoch-1",
                     folder);
}

int saved_read(const char *const *words, int keep, const char *what, struct error *err)
{
    char *argv[WORDS_MAX + 2] = {NULL}, ended[64];
    struct child child;
    if (sibling_path("gimbal-executor", &argv[0], err) < 0)
        return EXIT_FAILED;
    for (int i = 0; i < WORDS_MAX && words[i]; i++)
        argv[i + 1] = (char *)words[i];
    int rc = child_start(argv, &keep, keep < 0 ? 0 : 1, STDOUT_FILENO, STDERR_FILENO, &child, err);
    free(argv[0]);
    if (rc < 0)
        return EXIT_FAILED;
    child_wait(&child, -1);
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
        return EXIT_DONE;
    return error_set(err, EXIT_FAILED, "%s ended with %s", what,
                     child_print_end(&child, ended, sizeof ended));
}
