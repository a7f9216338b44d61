/* cgroup.c - walks from this process's group up to the mounted root. */
#include "worker/hardware/cgroup_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* File names by cgroup version. In version 1 a controller has groups, and a folder, of its own. */
static const struct version {
    const char *controller, *folder, *limit, *kills;
} versions[] = {
    {"", "", "memory.max", "memory.events"},
    {"memory", "/memory", "memory.limit_in_bytes", "memory.oom_control"},
};
#define VERSIONS (sizeof versions / sizeof *versions)

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

void cgroup_find(const char *self, const char *controller, char *group, int size)
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
            snprintf(group, (size_t)size, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (file)
        fclose(file);
}

/* Lower *bytes to the limit in a file. A group without the file, such as the root, has no limit. */
static int apply_limit(const char *path, uint64_t *bytes, struct error *err)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    if (read && strcmp(text, "max") == 0)
        return 0;
    char *end = text;
    errno = 0;
    unsigned long long limit = strtoull(text, &end, 10);
    if (!read || end == text || *end || errno)
        return error_set(err, -EINVAL, "%s says '%s', which is neither a number of bytes nor 'max'",
                         path, text);
    if (limit < *bytes)
        *bytes = limit;
    return 0;
}

bool cgroup_go_up(char *group)
{
    char *slash = strrchr(group, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err)
{
    char group[PATH_MAX], path[2 * PATH_MAX];
    uint64_t least = UINT64_MAX;
    for (const struct version *version = versions; version < versions + VERSIONS; version++) {
        cgroup_find(self, version->controller, group, sizeof group);
        do {
            snprintf(path, sizeof path, "%s%s%s/%s", root, version->folder, group, version->limit);
            int rc = apply_limit(path, &least, err);
            if (rc < 0)
                return rc;
        } while (cgroup_go_up(group));
    }
    *bytes = least;
    return 0;
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

bool cgroup_kills(const char *root, const char *self, const char *vmstat, struct cgroup_kills *out)
{
    char group[PATH_MAX], path[2 * PATH_MAX];
    uint64_t count;
    for (const struct version *version = versions; version < versions + VERSIONS; version++) {
        cgroup_find(self, version->controller, group, sizeof group);
        do {
            snprintf(path, sizeof path, "%s%s%s/%s", root, version->folder, group, version->kills);
            if (!read_kills(path, &count))
                continue;
            *out = (struct cgroup_kills){count, version->kills};
            return true;
        } while (cgroup_go_up(group));
    }
    if (!read_kills(vmstat, &count))
        return false;
    *out = (struct cgroup_kills){count, "vmstat"};
    return true;
}
