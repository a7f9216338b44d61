/* saved.c - asks for the checkpoints of a job, and runs a child that reads one. */
#include "coordinator/cli/commands/checkpoint/saved.h"

#include "common/base/memory.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 16

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

/* A person may name the folder above, or one that is not there. */
int saved_find(const char *folder, struct error *err)
{
    char *path = xasprintf("%s/manifest.json", folder);
    bool has = access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
    free(path);
    if (has)
        return EXIT_DONE;
    return error_set(err, EXIT_INPUT,
                     "'%s' has no manifest.json: name the folder of one step, such as "
                     ".../step-200.epoch-1",
                     folder);
}

static int start(const char *const *words, int keep, int report, struct child *child,
                 struct error *err)
{
    char *argv[WORDS_MAX + 4] = {NULL}, number[16];
    int kept[] = {report, keep}, count = 1;
    if (sibling_path("gimbal-executor", &argv[0], err) < 0)
        return EXIT_FAILED;
    for (int i = 0; i < WORDS_MAX && words[i]; i++)
        argv[count++] = (char *)words[i];
    snprintf(number, sizeof number, "%d", report);
    argv[count++] = (char *)"--report";
    argv[count] = number;
    int rc = child_start(argv, kept, keep < 0 ? 1 : 2, STDOUT_FILENO, STDERR_FILENO, child, err);
    free(argv[0]);
    return rc < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* The child has ended: its error is in the pipe, unless it did not come so far. */
static int read_end(const struct child *child, int report, const char *what, struct error *err)
{
    char text[sizeof err->text + 16], *words;
    ssize_t size = read(report, text, sizeof text - 1);
    if (WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0)
        return EXIT_DONE;
    if (size > 0) {
        text[size] = '\0';
        int number = (int)strtol(text, &words, 10);
        return error_set(err, exit_of_errno(-number), "%s", words + strspn(words, " "));
    }
    return error_set(err, EXIT_FAILED, "%s ended with %s", what,
                     child_print_end(child, text, sizeof text));
}

int saved_read(const char *const *words, int keep, const char *what, struct error *err)
{
    struct child child;
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return error_set(err, EXIT_FAILED, "make a pipe: %s", strerror(errno));
    int code = start(words, keep, report[1], &child, err);
    close(report[1]);
    if (code == EXIT_DONE) {
        child_wait(&child, -1);
        code = read_end(&child, report[0], what, err);
    }
    close(report[0]);
    return code;
}

/* The text of the job file goes into a file in memory, which no crash leaves behind. */
static int make(const char *folder, const char *yaml, struct saved *out, struct error *err)
{
    size_t size = strlen(yaml);
    int fd = memfd_create("job.yaml", MFD_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, yaml, size);
    if (written == (ssize_t)size) {
        *out = (struct saved){xstrdup(folder), xasprintf("/proc/self/fd/%d", fd), fd};
        return EXIT_DONE;
    }
    if (fd >= 0)
        close(fd);
    return error_set(err, EXIT_FAILED, "keep the job file in memory: %s",
                     strerror(written < 0 ? errno : ENOSPC));
}

static int open_path(const struct saved_flags *flags, const char *folder, struct saved *out,
                     struct error *err)
{
    struct job_config *job;
    char *text;
    if (flags->step >= 0)
        return error_set(err, EXIT_USAGE,
                         "--step is for a JOB: a folder already holds a single step");
    if (!flags->file)
        return error_set(err, EXIT_USAGE,
                         "needs the job file that '%s' was trained by: -f job.yaml", folder);
    int code = saved_find(folder, err);
    if (code == EXIT_DONE)
        code = jobfile_load(flags->file, &text, &job, err);
    if (code != EXIT_DONE)
        return code;
    code = make(folder, text, out, err);
    free(text);
    job_config_destroy(job);
    return code;
}

/* There is none to take: of all that the job has saved, or because it saves none. */
static int refuse_none(const Gimbal__GetJobReply *job, const char *name, struct error *err)
{
    const char *yaml = job->spec ? job->spec->yaml : "";
    struct job_config *config = NULL;
    bool known = job_config_parse(yaml, strlen(yaml), name, &config, err) == 0;
    bool saves = !known || config->checkpoint.dir;
    job_config_destroy(config);
    if (!saves)
        return error_set(err, EXIT_INPUT,
                         "%s has saved nothing: its job file names no folder for checkpoints "
                         "(checkpoint.dir)",
                         name);
    if (job->n_checkpoints == 0)
        return error_set(err, EXIT_INPUT,
                         "%s has saved no checkpoint yet: 'gimbal checkpoint list %s' shows when "
                         "there is one",
                         name, name);
    return error_set(err, EXIT_INPUT, "%s has no undamaged checkpoint", name);
}

/* Checkpoints are listed with the newest first. */
static int choose(const Gimbal__GetJobReply *job, const char *name, int64_t step,
                  const Gimbal__Checkpoint **out, struct error *err)
{
    for (size_t i = 0; i < job->n_checkpoints; i++) {
        *out = job->checkpoints[i];
        if (step < 0 ? !(*out)->damaged : (*out)->step == (uint64_t)step)
            return EXIT_DONE;
    }
    return step < 0 ? refuse_none(job, name, err)
                    : error_set(err, EXIT_INPUT,
                                "%s has no checkpoint of step %" PRId64
                                ": 'gimbal checkpoint list %s' shows them",
                                name, step, name);
}

static int open_listed(const Gimbal__GetJobReply *reply, const char *job, int64_t step,
                       struct saved *out, struct error *err)
{
    const Gimbal__Checkpoint *checkpoint = NULL;
    int code = choose(reply, job, step, &checkpoint, err);
    if (code == EXIT_DONE && saved_find(checkpoint->folder, err) != EXIT_DONE)
        code = error_set(err, EXIT_INPUT,
                         "'%s' cannot be reached from here: run this where the nodes of %s have it",
                         checkpoint->folder, job);
    if (code == EXIT_DONE)
        code = make(checkpoint->folder, reply->spec ? reply->spec->yaml : "", out, err);
    return code;
}

int saved_open(const struct common *common, const struct saved_flags *flags, const char *what,
               struct saved *out, struct error *err)
{
    Gimbal__GetJobReply *reply;
    if (named_path(what))
        return open_path(flags, what, out, err);
    if (flags->file)
        return error_set(err, EXIT_USAGE, "-f is for a DIRECTORY: %s has its own job file", what);
    int code = saved_ask(common, what, &reply, err);
    if (code != EXIT_DONE)
        return code;
    code = open_listed(reply, what, flags->step, out, err);
    message_free(&reply->base);
    return code;
}

void saved_close(struct saved *saved)
{
    close(saved->keep);
    free(saved->folder);
    free(saved->job);
}
