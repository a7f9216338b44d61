/* cgroup_share.c - limits that the kernel enforces by making processes wait or by refusing:
 * processor time, and threads. */
#include "worker/hardware/cgroup_internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read the first line of DIRECTORY/NAME; false: there is none. */
static bool read_text(const char *directory, const char *name, char *out, int size)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(out, size, file);
    if (file)
        fclose(file);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

static int refuse(const char *directory, const char *name, const char *text, struct error *err)
{
    return error_set(err, -EINVAL, "%s/%s says '%s', which is no limit", directory, name, text);
}

/* For cgroup v2, as in "50000 100000" or "max 100000": microseconds per period. */
static int quota_new(const char *directory, double *processors, struct error *err)
{
    char text[64];
    double quota, period;
    if (!read_text(directory, "cpu.max", text, sizeof text) || strncmp(text, "max", 3) == 0)
        return 0;
    if (sscanf(text, "%lf %lf", &quota, &period) != 2 || !(period > 0))
        return refuse(directory, "cpu.max", text, err);
    *processors = fmin(*processors, quota / period);
    return 0;
}

/* For cgroup v1, in two files; a quota of -1 means none. */
static int quota_old(const char *directory, double *processors, struct error *err)
{
    char text[64];
    double quota = -1, period = 0;
    if (!read_text(directory, "cpu.cfs_quota_us", text, sizeof text))
        return 0;
    if (sscanf(text, "%lf", &quota) != 1)
        return refuse(directory, "cpu.cfs_quota_us", text, err);
    if (quota <= 0 || !read_text(directory, "cpu.cfs_period_us", text, sizeof text))
        return 0;
    if (sscanf(text, "%lf", &period) != 1 || !(period > 0))
        return refuse(directory, "cpu.cfs_period_us", text, err);
    *processors = fmin(*processors, quota / period);
    return 0;
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return end != text && !*end && !errno;
}

/* The same files in both versions. */
static int room(const char *directory, double *threads, struct error *err)
{
    char text[64];
    uint64_t most, there = 0;
    if (!read_text(directory, "pids.max", text, sizeof text) || strcmp(text, "max") == 0)
        return 0;
    if (!read_number(text, &most))
        return refuse(directory, "pids.max", text, err);
    if (read_text(directory, "pids.current", text, sizeof text) && !read_number(text, &there))
        return refuse(directory, "pids.current", text, err);
    *threads = fmin(*threads, most > there ? (double)(most - there) : 0);
    return 0;
}

typedef int look_cb(const char *directory, double *least, struct error *err);

/* Apply `look` to the group's folder and to those of its ancestors. */
static int look_up(const char *root, const char *self, const char *controller, look_cb *look,
                   double *least, struct error *err)
{
    char group[PATH_MAX], directory[2 * PATH_MAX];
    int rc = 0;
    cgroup_find(self, controller, group, sizeof group);
    do {
        snprintf(directory, sizeof directory, "%s%s%s%s", root, *controller ? "/" : "", controller,
                 group);
        rc = look(directory, least, err);
    } while (rc == 0 && cgroup_go_up(group));
    return rc;
}

int cgroup_processors(const char *root, const char *self, double *processors, struct error *err)
{
    *processors = INFINITY;
    int rc = look_up(root, self, "", quota_new, processors, err);
    return rc == 0 ? look_up(root, self, "cpu", quota_old, processors, err) : rc;
}

int cgroup_threads(const char *root, const char *self, uint64_t *threads, struct error *err)
{
    double least = INFINITY;
    int rc = look_up(root, self, "", room, &least, err);
    if (rc == 0)
        rc = look_up(root, self, "pids", room, &least, err);
    *threads = isinf(least) ? UINT64_MAX : (uint64_t)least;
    return rc;
}
