/* child.c - processes by posix_spawn, a pidfd, a socket pair for the channel and a pipe for
 * output. They are looked at in /proc/PID/stat of the process and of its threads. */
#include "worker/node/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT_SIZE 512 /* of the line in /proc that is read */
#define ARGUMENTS_MAX 24
/* Commands are few and small, and executors read them at once. One that lets its buffer stay full
 * for this long is stuck, and must not keep the node waiting. */
#define SEND_TIMEOUT_S 1

/* Output that is taken at a time: all that a pipe holds, even with large pages, but no more, or a
 * child that never stops printing would keep the node from everything else. */
#define OUTPUT_MAX ((size_t)1 << 20)

extern char **environ;

/* Fill argv, of size ARGUMENTS_MAX. `parent` is this process's id as text. */
static void fill_arguments(const struct child_options *options, const char *parent,
                           const char **argv)
{
    const char *const shim[] = {options->shim, "--parent", parent,     "--channel",     "3",
                                "--trail",     "4",        "--cpuset", options->cpuset, NULL};
    const char *const program[] = {"--", options->program, "--channel", "3", NULL};
    const char *const state[] = {options->state_fd < 0 ? NULL : "--state", "5", NULL};
    const char *const trail[] = {"--trail", "4", NULL};
    const char *const *const words[] = {shim, state, program, state, options->arguments, trail};
    size_t count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *const *word = words[i]; *word && count < ARGUMENTS_MAX - 1; word++)
            argv[count++] = *word;
    argv[count] = NULL;
}

/* The child starts with default signal handling, whatever is blocked or ignored here. */
static void fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* The child's ends of its descriptors, besides stdin. */
struct ends {
    int output, channel, trail;
};

static int child_spawn(const struct child_options *options, const struct ends *ends, pid_t *pid)
{
    const char *argv[ARGUMENTS_MAX];
    char parent[16];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    fill_arguments(options, parent, argv);
    fill_attributes(&attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends->output, 1);
    posix_spawn_file_actions_adddup2(&actions, ends->output, 2);
    posix_spawn_file_actions_adddup2(&actions, ends->channel, INHERITED_CHANNEL);
    posix_spawn_file_actions_adddup2(&actions, ends->trail, INHERITED_TRAIL);
    if (options->state_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, options->state_fd, INHERITED_STATE);
    int rc = posix_spawn(pid, options->shim, &actions, &attributes, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -rc;
}

static void close_those(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int child_start(const struct child_options *options, struct child *out, struct error *err)
{
    enum { PARENT, CHILD, READ, WRITE, TRAIL, FDS };
    int fds[FDS] = {-1, -1, -1, -1, -1}, pid_fd = -1;
    struct trail *trail = NULL;
    struct cgroup_kills kills = {0};
    pid_t pid = -1;
    cgroup_kills(CGROUPS, CGROUP_SELF, CGROUP_VMSTAT, &kills);
    int rc = channel_pair(&fds[PARENT], &fds[CHILD], err);
    if (rc == 0 && pipe2(&fds[READ], O_CLOEXEC) < 0)
        rc = error_set(err, -errno, "pipe: %s", strerror(errno));
    if (rc == 0)
        rc = trail_create(&trail, &fds[TRAIL], err);
    const struct ends ends = {fds[WRITE], fds[CHILD], fds[TRAIL]};
    if (rc == 0 && (rc = child_spawn(options, &ends, &pid)) < 0)
        error_set(err, rc, "%s: %s", options->shim, strerror(-rc));
    if (rc == 0 && (pid_fd = (int)syscall(SYS_pidfd_open, pid, 0)) < 0) {
        rc = error_set(err, -errno, "pidfd_open: %s", strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (rc < 0) {
        close_those(fds, FDS);
        trail_close(trail);
        return rc;
    }
    close(fds[CHILD]);
    close(fds[WRITE]);
    close(fds[TRAIL]);
    fcntl(fds[READ], F_SETFL, O_NONBLOCK);
    setsockopt(fds[PARENT], SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = SEND_TIMEOUT_S},
               sizeof(struct timeval));
    *out = (struct child){
        .pid = pid, .pid_fd = pid_fd, .output_fd = fds[READ], .trail = trail, .kills = kills};
    channel_open(&out->channel, fds[PARENT]);
    return 0;
}

int child_send(struct child *child, const ProtobufCMessage *command, struct error *err)
{
    return channel_write(&child->channel, command, err);
}

void child_renew(struct child *child)
{
    cgroup_kills(CGROUPS, CGROUP_SELF, CGROUP_VMSTAT, &child->kills);
}

void child_signal(struct child *child, int signal)
{
    child->killed = child->killed || signal == SIGKILL;
    /* Until the shim has made it a group leader there is only the process itself. */
    if (kill(-child->pid, signal) < 0)
        kill(child->pid, signal);
}

void child_read_output(struct child *child, lines_cb callback, void *data)
{
    char bytes[4096];
    for (size_t taken = 0; child->output_fd >= 0 && taken < OUTPUT_MAX;) {
        ssize_t n = read(child->output_fd, bytes, sizeof bytes);
        if (n > 0) {
            lines_feed(&child->lines, bytes, (size_t)n, callback, data);
            taken += (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close(child->output_fd);
            child->output_fd = -1;
        }
    }
}

/* Returns what follows the name, which is in parentheses and may contain parentheses itself. NULL:
 * the process is gone. */
static const char *child_stat(const char *path, char line[STAT_SIZE])
{
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t size = fread(line, 1, STAT_SIZE - 1, file);
    fclose(file);
    line[size] = '\0';
    const char *end = strrchr(line, ')');
    return end && end[1] == ' ' ? end + 2 : NULL;
}

/* User and system time are fields 14 and 15; the text begins with the state, field 3. */
static uint64_t processor_ms(const char *stat)
{
    unsigned long long user = 0, system = 0;
    sscanf(stat, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
    return (uint64_t)(user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static bool some_thread_wants_to_run(pid_t pid)
{
    char path[64], line[STAT_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    bool some = false;
    for (const struct dirent *entry; folder && !some && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
        const char *stat = child_stat(path, line);
        some = stat && stat[0] == 'R';
    }
    if (folder)
        closedir(folder);
    return some;
}

void child_look(struct child_look *look, pid_t pid, uint64_t now_ms)
{
    char path[40], line[STAT_SIZE];
    const struct child_look before = *look;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *stat = child_stat(path, line);
    *look = (struct child_look){.at_ms = now_ms};
    if (!stat)
        return;
    look->busy_ms = processor_ms(stat);
    look->stopped = stat[0] == 'T' || stat[0] == 't';
    bool idle = before.at_ms > 0 && 2 * (look->busy_ms - before.busy_ms) < now_ms - before.at_ms;
    look->starved = idle && !look->stopped && some_thread_wants_to_run(pid);
}

/* If the kernel killed somebody for memory meanwhile, a SIGKILL from an unknown sender is
 * attributed to it. */
static void blame_kernel(const struct cgroup_kills *before, struct child_end *end)
{
    struct cgroup_kills now;
    end->for_memory = cgroup_kills(CGROUPS, CGROUP_SELF, CGROUP_VMSTAT, &now) &&
                      now.where == before->where && now.count > before->count;
    size_t length = strlen(end->how);
    if (end->for_memory)
        snprintf(end->how + length, sizeof end->how - length,
                 ", by the kernel for memory (oom_kill %" PRIu64 " -> %" PRIu64 " in %s)",
                 before->count, now.count, now.where);
}

struct child_end child_kill(struct child *child)
{
    siginfo_t info = {0};
    struct child_end end = {""};
    bool killed = child->killed;
    /* Before it is reaped: until then its pid cannot be reused. */
    child_signal(child, SIGKILL);
    while (waitid(P_PID, (id_t)child->pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
    if (info.si_code == CLD_EXITED)
        snprintf(end.how, sizeof end.how, "left with exit status %d", info.si_status);
    else
        snprintf(end.how, sizeof end.how, "was killed by signal %d (%s)%s", info.si_status,
                 strsignal(info.si_status),
                 info.si_status == SIGBUS ? ": a file that it reads, such as the job's data, has "
                                            "become shorter, or a disk or the memory has failed"
                                          : "");
    end.struck = info.si_code != CLD_EXITED && info.si_status != SIGTERM &&
                 !(info.si_status == SIGKILL && killed);
    if (end.struck && info.si_status == SIGKILL)
        blame_kernel(&child->kills, &end);
    channel_close(&child->channel);
    trail_close(child->trail);
    close_those((const int[]){child->pid_fd, child->output_fd}, 2);
    return end;
}
