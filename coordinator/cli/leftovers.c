/* leftovers.c - looks for leftovers in /proc, the folder and /dev/shm. */
#include "coordinator/cli/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/memory.h"

/* the kernel kills orphaned executors at once, so this is long */
#define PATIENCE_MS 2000
#define DEPTH_MAX 8 /* of a process below us */
#define FOLDERS_OPEN_MAX 8

/* Append a line. */
static void leftovers_add(char **lines, const char *what, const char *name)
{
    char *longer = xasprintf("%s%s %s\n", *lines ? *lines : "", what, name);
    free(*lines);
    *lines = longer;
}

/* A process's parent and name; 0 if the process is gone. */
static pid_t leftovers_parent_of(pid_t pid, char *name, size_t size)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char *read = fgets(line, sizeof line, file);
    fclose(file);
    /* PID (NAME) STATE PARENT; a name may contain anything, even parentheses. */
    char *begin = strchr(line, '('), *end = strrchr(line, ')');
    int parent = 0;
    if (!read || !begin || !end || sscanf(end + 1, " %*c %d", &parent) != 1)
        return 0;
    snprintf(name, size, "%.*s", (int)(end - begin - 1), begin + 1);
    return parent;
}

/* Call for every process there is. */
static void leftovers_each_process(void (*callback)(void *data, pid_t pid), void *data)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int pid = atoi(entry->d_name);
        if (pid > 0)
            callback(data, pid);
    }
    if (folder)
        closedir(folder);
}

struct search {
    const char *name;
    uint64_t bytes;
    pid_t child; /* one that is ours */
    char child_name[32];
};

static uint64_t leftovers_peak_bytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

static void leftovers_take_bytes(void *data, pid_t pid)
{
    struct search *search = data;
    char name[32], ignored[32];
    pid_t ancestor = leftovers_parent_of(pid, name, sizeof name);
    if (!ancestor || strcmp(name, search->name) != 0)
        return;
    for (int depth = 0; depth < DEPTH_MAX && ancestor > 1 && ancestor != getpid(); depth++)
        ancestor = leftovers_parent_of(ancestor, ignored, sizeof ignored);
    uint64_t bytes = ancestor == getpid() ? leftovers_peak_bytes(pid) : 0;
    search->bytes = bytes > search->bytes ? bytes : search->bytes;
}

uint64_t leftovers_resident_bytes(const char *name)
{
    struct search search = {.name = name};
    leftovers_each_process(leftovers_take_bytes, &search);
    return search.bytes;
}

static void leftovers_take_child(void *data, pid_t pid)
{
    struct search *search = data;
    char name[32];
    if (leftovers_parent_of(pid, name, sizeof name) != getpid())
        return;
    search->child = pid;
    memcpy(search->child_name, name, sizeof name);
}

/* Whether it has not ended within a moment. */
static bool leftovers_goes_on(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    bool on = pidfd >= 0 && poll(&ended, 1, PATIENCE_MS) == 0;
    if (pidfd >= 0)
        close(pidfd);
    return on;
}

/* Orphans became our children, since we are a subreaper. */
static void leftovers_find_processes(char **left)
{
    for (;;) {
        struct search search = {0};
        leftovers_each_process(leftovers_take_child, &search);
        if (search.child == 0)
            return;
        if (leftovers_goes_on(search.child)) {
            leftovers_add(left, "process", search.child_name);
            kill(search.child, SIGKILL);
        }
        waitpid(search.child, NULL, 0);
    }
}

static int leftovers_is_expected(const char *name)
{
    size_t length = strlen(name);
    return name[0] == '.' || strcmp(name, "job.yaml") == 0 || strcmp(name, "state") == 0 ||
           (length > 4 && strcmp(name + length - 4, ".log") == 0);
}

static void leftovers_find_files(const char *path, char **left)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (!leftovers_is_expected(entry->d_name))
            leftovers_add(left, "file", entry->d_name);
    if (folder)
        closedir(folder);
}

static void leftovers_find_shared_memory(char **left)
{
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    struct stat stat;
    while (folder && (entry = readdir(folder)))
        if (strstr(entry->d_name, "gimbal") &&
            fstatat(dirfd(folder), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            stat.st_uid == getuid())
            leftovers_add(left, "shared memory", entry->d_name);
    if (folder)
        closedir(folder);
}

char *leftovers_find(const char *folder)
{
    char *left = NULL;
    leftovers_find_processes(&left);
    leftovers_find_files(folder, &left);
    leftovers_find_shared_memory(&left);
    return left;
}

/* An orphan's parent is the first process or another subreaper. */
static bool leftovers_is_collector(pid_t pid)
{
    char name[32] = "";
    leftovers_parent_of(pid, name, sizeof name);
    return strncmp(name, "gimbal", 6) != 0 && (pid == 1 || strcmp(name, "systemd") == 0);
}

static void leftovers_take_orphan(void *data, pid_t pid)
{
    char name[32], **left = data;
    pid_t parent = leftovers_parent_of(pid, name, sizeof name);
    if (!parent || strcmp(name, "gimbal-executor") != 0 || !leftovers_is_collector(parent) ||
        !leftovers_goes_on(pid))
        return;
    char *longer = xasprintf("%sprocess %d, %s\n", *left ? *left : "", (int)pid, name);
    free(*left);
    *left = longer;
}

char *leftovers_orphans(void)
{
    char *left = NULL;
    leftovers_each_process(leftovers_take_orphan, &left);
    return left;
}

static int leftovers_remove_one(const char *path, const struct stat *status, int kind,
                                struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

void leftovers_remove(const char *path, char **left)
{
    if (nftw(path, leftovers_remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 &&
        errno != ENOENT)
        leftovers_add(left, "folder", path);
}
