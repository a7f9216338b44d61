/* quota.c - see quota.h. */
#include "tests/cluster/quota.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct version {
    const char *root;    /* where the groups are */
    const char *hand_on; /* what gives groups the controller; NULL: they have it */
    const char *limit, *words;
} versions[] = {
    {"/sys/fs/cgroup/cpu", NULL, "cpu.cfs_quota_us", "50000"}, /* of a period of 100 ms */
    {"/sys/fs/cgroup", "cgroup.subtree_control", "cpu.max", "50000 100000"},
};

static const struct version *version;
static char group[64];

static bool say(const char *folder, const char *name, const char *words)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    bool said = file && fputs(words, file) >= 0;
    return (!file || fclose(file) == 0) && said;
}

static bool make_group(const struct version *at)
{
    snprintf(group, sizeof group, "%s/gimbal-quota-%d", at->root, (int)getpid());
    if ((at->hand_on && !say(at->root, at->hand_on, "+cpu")) || mkdir(group, 0755) < 0)
        return false;
    if (say(group, at->limit, at->words))
        return true;
    rmdir(group);
    return false;
}

const char *quota_open(void)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (make_group(&versions[i])) {
            version = &versions[i];
            return NULL;
        }
    }
    return "no control group can be made below /sys/fs/cgroup";
}

static void move(const char *folder, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    ck_assert_msg(say(folder, "cgroup.procs", text), "%s: %s", folder, strerror(errno));
}

void quota_limit(pid_t pid)
{
    move(group, pid);
}

void quota_lift(pid_t pid)
{
    move(version->root, pid);
}

bool quota_close(void)
{
    return rmdir(group) == 0;
}
