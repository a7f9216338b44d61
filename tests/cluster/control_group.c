/* control_group.c - see control_group.h. */
#include "tests/cluster/control_group.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

static bool say(const char *folder, const char *name, const char *words)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    bool said = file && fputs(words, file) >= 0;
    return (!file || fclose(file) == 0) && said;
}

/* Where this process is in the groups of a controller of version 1: "/", or a group that others
 * made for it; as lines of /proc/self/cgroup have it, "3:cpu,cpuacct:/a". */
static void find_own(const char *controller, char *path, size_t size)
{
    char line[320];
    FILE *file = fopen("/proc/self/cgroup", "re");
    snprintf(path, size, ROOT "/%s", controller);
    while (file && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *at = names ? strchr(names + 1, ':') : NULL, *rest;
        if (!at)
            continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        for (char *name = strtok_r(names + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
            if (strcmp(name, controller) == 0 && strcmp(at, "/") != 0)
                snprintf(path, size, ROOT "/%s%s", controller, at);
    }
    if (file)
        fclose(file);
}

/* Of version 1 a controller has groups of its own; of version 2 they are given controllers, and a
 * group that has processes cannot have groups: ours is beside all others there. */
static bool make(struct control_group *group, const char *controller, const char *limit)
{
    bool own = group->version == CONTROL_GROUP_1;
    char give[32], path[320];
    snprintf(give, sizeof give, "+%s", controller);
    if (own)
        find_own(controller, group->root, sizeof group->root);
    else
        snprintf(group->root, sizeof group->root, ROOT);
    snprintf(group->folder, sizeof group->folder, "%s/gimbal-%s-%d", group->root, controller,
             (int)getpid());
    if ((!own && !say(group->root, "cgroup.subtree_control", give)) ||
        mkdir(group->folder, 0755) < 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", group->folder, limit);
    if (access(path, W_OK) == 0)
        return true;
    rmdir(group->folder);
    return false;
}

const char *control_group_open(struct control_group *group, const char *controller,
                               const char *const limits[CONTROL_GROUP_VERSIONS])
{
    for (group->version = 0; group->version < CONTROL_GROUP_VERSIONS; group->version++)
        if (make(group, controller, limits[group->version]))
            return NULL;
    return "no control group can be made below " ROOT;
}

bool control_group_say(const struct control_group *group, const char *name, const char *words)
{
    return say(group->folder, name, words);
}

static void move(const char *folder, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    ck_assert_msg(say(folder, "cgroup.procs", text), "%s: %s", folder, strerror(errno));
}

void control_group_take(const struct control_group *group, pid_t pid)
{
    move(group->folder, pid);
}

void control_group_release(const struct control_group *group, pid_t pid)
{
    move(group->root, pid);
}

bool control_group_close(const struct control_group *group)
{
    return rmdir(group->folder) == 0;
}
