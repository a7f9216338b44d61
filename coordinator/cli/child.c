/* child.c - posix_spawn() with our own binary as a shim (child.h), and waiting for what it
 * becomes. */
#include "coordinator/cli/child.h"

#include "common/base/memory.h"
#include "common/base/spin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHIM_WORD "--become"
#define SHIM_ARGUMENTS 3 /* our path, the word, our parent's pid */
#define SHIM_FAILED 127

void child_shim(int argc, char **argv)
{
    if (argc <= SHIM_ARGUMENTS || strcmp(argv[1], SHIM_WORD) != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != (pid_t)strtol(argv[2], NULL, 10))
        _exit(SHIM_FAILED); /* our parent died before we asked */
    spin_briefly();
    execv(argv[SHIM_ARGUMENTS], argv + SHIM_ARGUMENTS);
    fprintf(stderr, "gimbal: start %s: %s\n", argv[SHIM_ARGUMENTS], strerror(errno));
    _exit(SHIM_FAILED);
}

static int set_attributes(posix_spawnattr_t *attributes)
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

static int set_files(posix_spawn_file_actions_t *files, const int *keep, size_t keep_count,
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

static int start(char *const *argv, char *const *environment, const int *keep, size_t keep_count,
                 int output_fd, int error_fd, struct child *out, struct error *err)
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
    int rc = set_attributes(&attributes);
    if (rc == 0)
        rc = set_files(&files, keep, keep_count, output_fd, error_fd);
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

int child_start(char *const *argv, const int *keep, size_t keep_count, int output_fd, int error_fd,
                struct child *out, struct error *err)
{
    return start(argv, environ, keep, keep_count, output_fd, error_fd, out, err);
}

/* Whether the variable, "NAME=VALUE", is one of those named. */
static bool is_named(const char *variable, const char *const *names)
{
    size_t length = strcspn(variable, "=");
    for (size_t i = 0; names && names[i]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], variable, length) == 0)
            return true;
    return false;
}

int child_start_without(char *const *argv, const char *const *without, int output_fd, int error_fd,
                        struct child *out, struct error *err)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **environment = xcalloc(count + 1, sizeof *environment); /* lent by ours */
    for (size_t i = 0; i < count; i++)
        if (!is_named(environ[i], without))
            environment[kept++] = environ[i];
    int rc = start(argv, environment, NULL, 0, output_fd, error_fd, out, err);
    free(environment);
    return rc;
}

int child_wait(struct child *child, int timeout_ms)
{
    struct pollfd ended = {.fd = child->pidfd, .events = POLLIN};
    if (child->pid == 0)
        return 1;
    int rc;
    do
        rc = poll(&ended, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    if (rc <= 0)
        return 0;
    waitpid(child->pid, &child->status, 0);
    close(child->pidfd);
    child->pid = 0;
    return 1;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid)
        kill(child->pid, signal);
}

void child_stop(struct child *child, int patience_ms)
{
    if (child->pid == 0)
        return;
    child_signal(child, SIGTERM);
    if (child_wait(child, patience_ms))
        return;
    child_signal(child, SIGKILL);
    child_wait(child, -1);
}

char *child_print_end(const struct child *child, char *out, size_t size)
{
    if (WIFSIGNALED(child->status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(child->status),
                 strsignal(WTERMSIG(child->status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(child->status));
    return out;
}
