/* cgroup.c - from this process's group up to the root of what is mounted. */
#include "worker/supervisor/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The group's path, from the line "0::/system.slice/x.service"; "" when there is no such line. */
static void read_group(const char *self, char *group, int size)
{
    group[0] = '\0';
    FILE *file = fopen(self, "re");
    char line[PATH_MAX];
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(group, (size_t)size, "%s", line + 3);
    }
    if (file)
        fclose(file);
}

/* Lower *bytes to what the file says; a group without the file, as the root's, has no limit. */
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

int cgroup_memory_limit(const char *root, const char *self, uint64_t *bytes, struct error *err)
{
    char group[PATH_MAX], path[2 * PATH_MAX];
    read_group(self, group, sizeof group);
    uint64_t least = UINT64_MAX;
    for (;;) {
        snprintf(path, sizeof path, "%s%s/memory.max", root, group);
        int rc = apply_limit(path, &least, err);
        if (rc < 0)
            return rc;
        char *slash = strrchr(group, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    *bytes = least;
    return 0;
}
