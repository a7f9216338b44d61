/* cluster.c - starts the processes of a cluster, and stops them. */
#include "coordinator/cli/commands/demo/cluster.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/leftovers.h"
#include "coordinator/cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define START_TIMEOUT_MS 10000
#define PAGE_LINE "\nhttp " /* in the file with its addresses: the second line */
#define LAST_WORDS 600      /* bytes of a log that an error message shows */

/* Start a process and watch for its end. */
static int demo_cluster_start_process(struct demo_cluster *cluster, struct demo_process *member,
                                      const char *name, char *const *argv, struct error *err)
{
    char path[PATH_MAX];
    snprintf(member->name, sizeof member->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s.log", cluster->folder, name);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        return error_set(err, -errno, "create '%s': %s", path, strerror(errno));
    int rc = process_start(argv, NULL, 0, log, log, &member->process, err);
    close(log);
    if (rc < 0)
        return rc;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(cluster->ended, EPOLL_CTL_ADD, member->process.pidfd, &event);
    return 0;
}

/* Wait for the file to appear; it is then complete. */
static int demo_cluster_wait_for_file(struct demo_cluster *cluster, const char *path, int signals,
                                      int watch, struct error *err)
{
    struct pollfd fds[] = {{watch, POLLIN, 0}, {cluster->ended, POLLIN, 0}, {signals, POLLIN, 0}};
    char events[4096];
    while (access(path, F_OK) < 0) {
        int ready = poll(fds, 3, START_TIMEOUT_MS);
        int signal = signals_take(signals);
        if (signal)
            return EXIT_SIGNAL + signal;
        if (fds[1].revents)
            return demo_cluster_explain_end(cluster, err);
        if (ready == 0)
            return error_set(err, EXIT_FAILED, "the coordinator was not listening after %d s",
                             START_TIMEOUT_MS / 1000);
        while (read(watch, events, sizeof events) > 0)
            continue;
    }
    return EXIT_DONE;
}

static int demo_cluster_learn_address(struct demo_cluster *cluster, const char *path, int signals,
                                      struct error *err)
{
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0 || inotify_add_watch(watch, cluster->folder, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
        error_set(err, -errno, "watch '%s': %s", cluster->folder, strerror(errno));
        if (watch >= 0)
            close(watch);
        return EXIT_IO;
    }
    int code = demo_cluster_wait_for_file(cluster, path, signals, watch, err);
    close(watch);
    if (code != EXIT_DONE)
        return code;
    if (file_read(path, &cluster->address, err) < 0)
        return EXIT_IO;
    char *page = strstr(cluster->address, PAGE_LINE);
    if (!page)
        return error_set(err, EXIT_INTERNAL, "the coordinator serves no pages");
    *page = '\0';
    cluster->page = page + strlen(PAGE_LINE);
    page[strlen(PAGE_LINE) + strcspn(cluster->page, "\n")] = '\0';
    return EXIT_DONE;
}

static int demo_cluster_start_coordinator(struct demo_cluster *cluster, int signals,
                                          struct error *err)
{
    char *program, *path, *state;
    if (sibling_path("gimbal-coordinator", &program, err) < 0)
        return EXIT_CONFIGURATION;
    path = xasprintf("%s/address", cluster->folder);
    state = xasprintf("%s/state", cluster->folder);
    char *argv[] = {program,          "--address", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0",
                    "--address-file", path,        "--state",           state,    NULL};
    int rc = demo_cluster_start_process(cluster, &cluster->members[0], "coordinator", argv, err);
    cluster->count += rc == 0;
    int code = rc < 0 ? exit_of_errno(rc) : demo_cluster_learn_address(cluster, path, signals, err);
    free(program);
    free(path);
    free(state);
    return code;
}

/* Start worker number `index`, which becomes processes[index + 1]. */
static int demo_cluster_start_worker(struct demo_cluster *cluster, int index, struct error *err)
{
    char *program, *executor, *state, name[] = "node-a", share[32];
    if (sibling_path("gimbal-worker", &program, err) < 0)
        return EXIT_CONFIGURATION;
    if (sibling_path("gimbal-executor", &executor, err) < 0) {
        free(program);
        return EXIT_CONFIGURATION;
    }
    state = xasprintf("%s/state", cluster->folder);
    name[sizeof name - 2] = (char)('a' + index);
    snprintf(share, sizeof share, "%d/%d", index, cluster->workers);
    char *argv[] = {
        program,   "--name", name,      "--coordinator", cluster->address, "--devices", "1",
        "--share", share,    "--state", state,           "--executor",     executor,    NULL};
    int rc = demo_cluster_start_process(cluster, &cluster->members[index + 1], name, argv, err);
    free(program);
    free(executor);
    free(state);
    return exit_of_errno(rc);
}

static int demo_cluster_start_workers(struct demo_cluster *cluster, struct error *err)
{
    int code = EXIT_DONE;
    for (int i = 0; i < cluster->workers && code == EXIT_DONE; i++) {
        code = demo_cluster_start_worker(cluster, i, err);
        cluster->count += code == EXIT_DONE;
    }
    return code;
}

int demo_cluster_start(int workers, int signals, struct demo_cluster *cluster, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    *cluster = (struct demo_cluster){.workers = workers, .ended = epoll_create1(EPOLL_CLOEXEC)};
    cluster->members = xcalloc((size_t)workers + 1, sizeof *cluster->members);
    cluster->folder =
        xasprintf("%s/gimbal-demo-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!mkdtemp(cluster->folder)) {
        error_set(err, -errno, "create a folder like '%s': %s", cluster->folder, strerror(errno));
        free(cluster->folder);
        cluster->folder = NULL;
        return EXIT_IO;
    }
    int code = demo_cluster_start_coordinator(cluster, signals, err);
    return code == EXIT_DONE ? demo_cluster_start_workers(cluster, err) : code;
}

static struct demo_process *demo_cluster_find_worker(const struct demo_cluster *cluster,
                                                     const char *node)
{
    for (int i = 1; i < cluster->count; i++)
        if (strcmp(cluster->members[i].name, node) == 0)
            return &cluster->members[i];
    return NULL;
}

pid_t demo_cluster_worker_pid(const struct demo_cluster *cluster, const char *node)
{
    const struct demo_process *member = demo_cluster_find_worker(cluster, node);
    return member ? member->process.pid : 0;
}

bool demo_cluster_kill(struct demo_cluster *cluster, const char *node)
{
    struct demo_process *member = demo_cluster_find_worker(cluster, node);
    if (!member || member->process.pid == 0)
        return false;
    epoll_ctl(cluster->ended, EPOLL_CTL_DEL, member->process.pidfd, NULL);
    process_signal(&member->process, SIGKILL);
    process_wait(&member->process, -1);
    return true;
}

bool demo_cluster_revive(struct demo_cluster *cluster, const char *node)
{
    const struct demo_process *member = demo_cluster_find_worker(cluster, node);
    struct error ignored;
    return member && member->process.pid == 0 &&
           demo_cluster_start_worker(cluster, (int)(member - cluster->members) - 1, &ignored) ==
               EXIT_DONE;
}

/* Read the end of its log, in whole lines. */
static void demo_cluster_read_last_words(const struct demo_cluster *cluster, const char *name,
                                         char *out, size_t size)
{
    char *path = xasprintf("%s/%s.log", cluster->folder, name);
    char *text = NULL;
    *out = '\0';
    if (file_read(path, &text, NULL) == 0) {
        size_t length = strlen(text);
        const char *begin = length > LAST_WORDS ? text + length - LAST_WORDS : text;
        const char *line = begin > text ? strchr(begin, '\n') : NULL;
        snprintf(out, size, "%s", line ? line + 1 : begin);
    }
    free(text);
    free(path);
}

int demo_cluster_explain_end(struct demo_cluster *cluster, struct error *err)
{
    char words[LAST_WORDS + 1], end[64];
    for (int i = 0; i < cluster->count; i++) {
        struct demo_process *member = &cluster->members[i];
        if (member->process.pid == 0 || !process_wait(&member->process, 0))
            continue;
        demo_cluster_read_last_words(cluster, member->name, words, sizeof words);
        return error_set(err, EXIT_FAILED, "%s ended too early (%s); its last log line:\n%s",
                         member->name, process_print_end(&member->process, end, sizeof end), words);
    }
    return error_set(err, EXIT_FAILED, "a process of the cluster has ended");
}

uint64_t demo_cluster_executor_bytes(void)
{
    return leftovers_resident_bytes("gimbal-executor");
}

void demo_cluster_stop(struct demo_cluster *cluster, bool keep, char **left)
{
    /* Workers first, all at once, so that they can report how their ranks ended. */
    for (int i = 1; i < cluster->count; i++)
        process_signal(&cluster->members[i].process, SIGTERM);
    for (int i = cluster->count - 1; i >= 0; i--)
        process_stop(&cluster->members[i].process, PATIENCE_MS);
    *left = cluster->folder ? leftovers_find(cluster->folder) : NULL;
    if (cluster->folder && !keep)
        leftovers_remove(cluster->folder, left);
    if (cluster->ended >= 0)
        close(cluster->ended);
    free(cluster->members);
    free(cluster->address);
    free(cluster->folder);
    *cluster = (struct demo_cluster){.ended = -1};
}
