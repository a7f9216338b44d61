/* cgroup.c - walks from this process's group up to the mounted root.
 *
 * In cgroup v2 a process has one group. In v1 a controller has groups, and a folder, of its own. */
#include "worker/hardware/cgroup.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The controller of cgroup v2. */
#define UNIFIED ""

/* Whether `name` is in a list such as "cpu,memory". In version 2 both are "". */
static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names;; at++) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
        at = strchr(at, ',');
        if (!at)
            return false;
    }
}

/* The path of the group with this controller, from a line such as "0::/system.slice/x.service" or
 * "4:cpu,memory:/x" of `self`. It is "" for the root, or if there is no such line. */
static void find_group(const char *self, const char *controller, char *group, size_t size)
{
    group[0] = '\0';
    FILE *file = fopen(self, "re");
    char line[PATH_MAX];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path++ = '\0';
        if (lists(names + 1, controller))
            snprintf(group, size, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (file)
        fclose(file);
}

/* Change the path to that of the parent; false: it was the root. */
static bool go_up(char *group)
{
    char *slash = strrchr(group, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Looks into a group's folder. 0: the one above is to be looked at, too; otherwise the end. */
typedef int cgroup_look_cb(const char *folder, void *found, struct error *err);

/* Look into the folder of this process's group, and into those of its ancestors. */
static int look_up(const char *root, const char *self, const char *controller, cgroup_look_cb *look,
                   void *found, struct error *err)
{
    char group[PATH_MAX], folder[2 * PATH_MAX];
    int rc = 0;
    find_group(self, controller, group, sizeof group);
    do {
        snprintf(folder, sizeof folder, "%s%s%s%s", root, *controller ? "/" : "", controller,
                 group);
        rc = look(folder, found, err);
    } while (rc == 0 && go_up(group));
    return rc;
}

/* As file_line(), of a file in the folder. */
static int read_line(const char *folder, const char *name, char *out, size_t size)
{
    char *path = xasprintf("%s/%s", folder, name);
    int rc = file_line(path, out, size);
    free(path);
    return rc;
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return end != text && !*end && !errno;
}

/* Lower *bytes to the limit in a file. A group without the file, such as the root, has no limit. */
static int apply_limit(const char *folder, const char *name, uint64_t *bytes, struct error *err)
{
    char text[64];
    uint64_t limit;
    int rc = read_line(folder, name, text, sizeof text);
    if ((rc < 0 && rc != -ENODATA) || strcmp(text, "max") == 0)
        return 0;
    if (!parse_number(text, &limit))
        return error_set(err, -EINVAL,
                         "%s/%s says '%s', which is neither a number of bytes nor 'max'", folder,
                         name, text);
    if (limit < *bytes)
        *bytes = limit;
    return 0;
}

static int memory_new(const char *folder, void *bytes, struct error *err)
{
    return apply_limit(folder, "memory.max", bytes, err);
}

static int memory_old(const char *folder, void *bytes, struct error *err)
{
    return apply_limit(folder, "memory.limit_in_bytes", bytes, err);
}

int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err)
{
    uint64_t least = UINT64_MAX;
    int rc = look_up(root, self, UNIFIED, memory_new, &least, err);
    if (rc == 0)
        rc = look_up(root, self, "memory", memory_old, &least, err);
    if (rc == 0)
        *bytes = least;
    return rc;
}

static int cgroup_refuse(const char *folder, const char *name, const char *text, struct error *err)
{
    return error_set(err, -EINVAL, "%s/%s says '%s', which is no limit", folder, name, text);
}

/* For cgroup v2, as in "50000 100000" or "max 100000": microseconds per period. */
static int quota_new(const char *folder, void *found, struct error *err)
{
    char text[64];
    double quota, period, *processors = found;
    if (read_line(folder, "cpu.max", text, sizeof text) < 0 || strncmp(text, "max", 3) == 0)
        return 0;
    if (sscanf(text, "%lf %lf", &quota, &period) != 2 || !(period > 0))
        return cgroup_refuse(folder, "cpu.max", text, err);
    *processors = fmin(*processors, quota / period);
    return 0;
}

/* For cgroup v1, in two files; a quota of -1 means none. */
static int quota_old(const char *folder, void *found, struct error *err)
{
    char text[64];
    double quota = -1, period = 0, *processors = found;
    if (read_line(folder, "cpu.cfs_quota_us", text, sizeof text) < 0)
        return 0;
    if (sscanf(text, "%lf", &quota) != 1)
        return cgroup_refuse(folder, "cpu.cfs_quota_us", text, err);
    if (quota <= 0 || read_line(folder, "cpu.cfs_period_us", text, sizeof text) < 0)
        return 0;
    if (sscanf(text, "%lf", &period) != 1 || !(period > 0))
        return cgroup_refuse(folder, "cpu.cfs_period_us", text, err);
    *processors = fmin(*processors, quota / period);
    return 0;
}

int cgroup_processors(const char *root, const char *self, double *processors, struct error *err)
{
    *processors = INFINITY;
    int rc = look_up(root, self, UNIFIED, quota_new, processors, err);
    return rc == 0 ? look_up(root, self, "cpu", quota_old, processors, err) : rc;
}

/* The same files in both versions. */
static int threads_left(const char *folder, void *found, struct error *err)
{
    char text[64];
    uint64_t most, there = 0, *threads = found;
    if (read_line(folder, "pids.max", text, sizeof text) < 0 || strcmp(text, "max") == 0)
        return 0;
    if (!parse_number(text, &most))
        return cgroup_refuse(folder, "pids.max", text, err);
    if (read_line(folder, "pids.current", text, sizeof text) == 0 && !parse_number(text, &there))
        return cgroup_refuse(folder, "pids.current", text, err);
    uint64_t left = most > there ? most - there : 0;
    *threads = left < *threads ? left : *threads;
    return 0;
}

int cgroup_threads(const char *root, const char *self, uint64_t *threads, struct error *err)
{
    *threads = UINT64_MAX;
    int rc = look_up(root, self, UNIFIED, threads_left, threads, err);
    return rc == 0 ? look_up(root, self, "pids", threads_left, threads, err) : rc;
}

/* Read the number in the line that starts with `oom_kill`. */
static bool read_kills(const char *path, uint64_t *count)
{
    static const char name[] = "oom_kill ";
    char line[128];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *from = line + strlen(name), *end = from;
        if (strncmp(line, name, strlen(name)) == 0)
            *count = strtoull(from, &end, 10);
        found = end != from;
    }
    if (file)
        fclose(file);
    return found;
}

/* 1: the nearest group that has such a file has been found. */
static int find_kills(const char *folder, const char *name, struct cgroup_kills *out)
{
    char *path = xasprintf("%s/%s", folder, name);
    bool found = read_kills(path, &out->count);
    free(path);
    if (found)
        out->where = name;
    return found;
}

static int kills_new(const char *folder, void *found, struct error *err)
{
    (void)err;
    return find_kills(folder, "memory.events", found);
}

static int kills_old(const char *folder, void *found, struct error *err)
{
    (void)err;
    return find_kills(folder, "memory.oom_control", found);
}

bool cgroup_kills(const char *root, const char *self, const char *vmstat, struct cgroup_kills *out)
{
    struct cgroup_kills found = {0};
    if (look_up(root, self, UNIFIED, kills_new, &found, NULL) == 0 &&
        look_up(root, self, "memory", kills_old, &found, NULL) == 0) {
        if (!read_kills(vmstat, &found.count))
            return false;
        found.where = "vmstat";
    }
    *out = found;
    return true;
}
