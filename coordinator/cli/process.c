/* process.c - posix_spawn() with our own binary as a shim (process.h), waiting for what it becomes,
 * and reading what it printed into memory. */
#include "coordinator/cli/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/process.h"

#define SHIM_WORD "--become"
#define SHIM_ARGUMENTS 3 /* our path, the word, our parent's pid */
#define SHIM_FAILED 127

void process_shim(int argc, char **argv)
{
    if (argc <= SHIM_ARGUMENTS || strcmp(argv[1], SHIM_WORD) != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        _exit(SHIM_FAILED); /* our parent died before we asked */
    process_spin_briefly();
    execv(argv[SHIM_ARGUMENTS], argv + SHIM_ARGUMENTS);
    fprintf(stderr, "gimbal: start %s: %s\n", argv[SHIM_ARGUMENTS], strerror(errno));
    _exit(SHIM_FAILED);
}

static int child_set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGINT);
    sigaddset(&standard, SIGTERM);
    sigaddset(&standard, SIGHUP);
    sigaddset(&standard, SIGPIPE);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &standard);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
}

static int child_set_files(posix_spawn_file_actions_t *files, const int *keep, size_t keep_count,
                           int output_fd, int error_fd)
{
    int rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(files, output_fd, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(files, error_fd, STDERR_FILENO);
    for (size_t i = 0; rc == 0 && i < keep_count; i++) /* onto itself: stays open on exec */
        rc = posix_spawn_file_actions_adddup2(files, keep[i], keep[i]);
    return rc;
}

static int child_spawn(char *const *argv, char *const *environment, const int *keep,
                       size_t keep_count, int output_fd, int error_fd, struct process *out,
                       struct error *err)
{
    size_t count = 0;
    char parent[24];
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    while (argv[count])
        count++;
    char **shim = xcalloc(SHIM_ARGUMENTS + count + 1, sizeof *shim);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    shim[0] = "gimbal";
    shim[1] = SHIM_WORD;
    shim[2] = parent;
    memcpy(shim + SHIM_ARGUMENTS, argv, count * sizeof *argv);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    int rc = child_set_attributes(&attributes);
    if (rc == 0)
        rc = child_set_files(&files, keep, keep_count, output_fd, error_fd);
    if (rc == 0)
        rc = posix_spawn(&out->pid, "/proc/self/exe", &files, &attributes, shim, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(shim);
    if (rc != 0) {
        out->pid = 0;
        return error_set(err, -rc, "start %s: %s", argv[0], strerror(rc));
    }
    out->status = 0;
    out->pidfd = pidfd_open(out->pid, 0);
    if (out->pidfd >= 0)
        return 0;
    rc = -errno;
    kill(out->pid, SIGKILL);
    waitpid(out->pid, NULL, 0);
    out->pid = 0;
    return error_set(err, rc, "watch %s: %s", argv[0], strerror(-rc));
}

int process_start(char *const *argv, const int *keep, size_t keep_count, int output_fd,
                  int error_fd, struct process *out, struct error *err)
{
    return child_spawn(argv, environ, keep, keep_count, output_fd, error_fd, out, err);
}

/* Whether the variable, "NAME=VALUE", is one of those named. */
static bool child_is_named(const char *variable, const char *const *names)
{
    size_t length = strcspn(variable, "=");
    for (size_t i = 0; names && names[i]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], variable, length) == 0)
            return true;
    return false;
}

int process_start_without(char *const *argv, const char *const *without, int output_fd,
                          int error_fd, struct process *out, struct error *err)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **environment = xcalloc(count + 1, sizeof *environment); /* lent by ours */
    for (size_t i = 0; i < count; i++)
        if (!child_is_named(environ[i], without))
            environment[kept++] = environ[i];
    int rc = child_spawn(argv, environment, NULL, 0, output_fd, error_fd, out, err);
    free(environment);
    return rc;
}

int process_wait(struct process *process, int timeout_ms)
{
    struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
    if (process->pid == 0)
        return 1;
    int rc;
    do
        rc = poll(&ended, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    if (rc <= 0)
        return 0;
    waitpid(process->pid, &process->status, 0);
    close(process->pidfd);
    process->pid = 0;
    return 1;
}

void process_signal(const struct process *process, int signal)
{
    if (process->pid)
        kill(process->pid, signal);
}

void process_stop(struct process *process, int patience_ms)
{
    if (process->pid == 0)
        return;
    process_signal(process, SIGTERM);
    if (process_wait(process, patience_ms))
        return;
    process_signal(process, SIGKILL);
    process_wait(process, -1);
}

char *process_print_end(const struct process *process, char *out, size_t size)
{
    if (WIFSIGNALED(process->status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(process->status),
                 strsignal(WTERMSIG(process->status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(process->status));
    return out;
}

static int sibling_folder(char *out, size_t size, struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length < 0)
        return error_set(err, -errno, "read /proc/self/exe: %s", strerror(errno));
    out[length] = '\0';
    *strrchr(out, '/') = '\0';
    return 0;
}

/* Which variable names another program in the place of one; NULL: none does. GIMBAL_COORDINATOR is
 * an address. */
static const char *sibling_variable(const char *name)
{
    static const struct {
        const char *program, *variable;
    } names[] = {
        {"gimbal-coordinator", "GIMBAL_COORDINATOR_PROGRAM"},
        {"gimbal-worker", "GIMBAL_WORKER"},
        {"gimbal-executor", "GIMBAL_EXECUTOR"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].program, name) == 0)
            return names[i].variable;
    return NULL;
}

int sibling_path(const char *name, char **out, struct error *err)
{
    char folder[PATH_MAX];
    const char *variable = sibling_variable(name), *given = variable ? getenv(variable) : NULL;
    if (given && *given) {
        if (access(given, X_OK) < 0)
            return error_set(err, -errno, "%s=%s: %s", variable, given, strerror(errno));
        *out = xstrdup(given);
        return 0;
    }
    int rc = sibling_folder(folder, sizeof folder, err);
    if (rc < 0)
        return rc;
    char *path = xasprintf("%s/%s", folder, name);
    if (access(path, X_OK) < 0) {
        free(path);
        return error_set(err, -ENOENT, "there is no program '%s' in %s; install it there%s%s", name,
                         folder, variable ? ", or name it by " : "", variable ? variable : "");
    }
    *out = path;
    return 0;
}

#define PATIENCE_MS 120000 /* a doctor starts executors, which load libraries */

static int process_await(char *const *argv, const char *const *without, int output_fd, int error_fd,
                         struct process *process, struct error *err)
{
    int rc = process_start_without(argv, without, output_fd, error_fd, process, err);
    if (rc < 0 || process_wait(process, PATIENCE_MS))
        return rc;
    process_stop(process, 0);
    return error_set(err, -ETIMEDOUT, "%s has not answered within %d s", argv[0],
                     PATIENCE_MS / 1000);
}

static int process_read_output(int fd, const char *name, char **out, struct error *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set(err, -errno, "%s: %s", name, strerror(errno));
    return file_read_open(fd, name, out, err);
}

static int process_run(char *const *argv, const char *const *without, struct process_answer *out,
                       struct error *err)
{
    struct process process = {0};
    int output_fd = memfd_create("output", MFD_CLOEXEC);
    int error_fd = memfd_create("errors", MFD_CLOEXEC), rc = 0;
    if (output_fd < 0 || error_fd < 0)
        rc = error_set(err, -errno, "memfd_create: %s", strerror(errno));
    if (rc == 0)
        rc = process_await(argv, without, output_fd, error_fd, &process, err);
    if (rc == 0)
        rc = process_read_output(output_fd, argv[0], &out->output, err);
    if (rc == 0)
        rc = process_read_output(error_fd, argv[0], &out->errors, err);
    out->status = process.status;
    if (output_fd >= 0)
        close(output_fd);
    if (error_fd >= 0)
        close(error_fd);
    return rc;
}

int process_ask(const char *name, const char *const *words, const char *const *without,
                struct process_answer *out, struct error *err)
{
    size_t count = 0;
    *out = (struct process_answer){NULL};
    int rc = sibling_path(name, &out->program, err);
    if (rc < 0)
        return rc;
    while (words[count])
        count++;
    char **argv = xcalloc(count + 2, sizeof *argv);
    argv[0] = out->program;
    memcpy(argv + 1, words, count * sizeof *argv);
    rc = process_run(argv, without, out, err);
    if (rc < 0)
        process_answer_finish(out);
    free(argv);
    return rc;
}

void process_answer_finish(struct process_answer *answer)
{
    free(answer->program);
    free(answer->output);
    free(answer->errors);
    *answer = (struct process_answer){NULL};
}

/* Fail with the first line of the text; of a daemon's log line, "... msg=\"WORDS\"", only the
 * words. */
static int process_refuse(const char *name, char *text, struct error *err)
{
    assert(text);
    char *words = strstr(text, " msg=\"");
    words = words ? words + strlen(" msg=\"") : text;
    words[strcspn(words, "\n")] = '\0';
    size_t length = strlen(words);
    if (words != text && length > 0 && words[length - 1] == '"')
        words[length - 1] = '\0';
    return error_set(err, -EPROTO, "%s: %s", name, *words ? words : "it failed without a word");
}

int process_ask_text(const char *name, const char *const *words, const char *const *without,
                     char **out, struct error *err)
{
    struct process_answer answer;
    int rc = process_ask(name, words, without, &answer, err);
    if (rc == 0 && answer.status != 0)
        rc = process_refuse(name, answer.errors, err);
    if (rc == 0) {
        *out = answer.output;
        answer.output = NULL;
    }
    process_answer_finish(&answer);
    return rc;
}

int signals_open(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : error_set(err, -errno, "signalfd: %s", strerror(errno));
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
