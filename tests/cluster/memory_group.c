/* memory_group.c - see memory_group.h. */
#include "tests/cluster/memory_group.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct version {
    const char *root;    /* where the groups are */
    const char *hand_on; /* what gives groups the controller; NULL: they have it */
    const char *limit, *swap;
    bool swap_counts_all; /* memory, too */
} versions[] = {
    {"/sys/fs/cgroup/memory", NULL, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", true},
    {"/sys/fs/cgroup", "cgroup.subtree_control", "memory.max", "memory.swap.max", false},
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

static bool has_limit(const struct version *at)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", group, at->limit);
    return access(path, W_OK) == 0;
}

static bool make_group(const struct version *at)
{
    snprintf(group, sizeof group, "%s/gimbal-memory-%d", at->root, (int)getpid());
    if ((at->hand_on && !say(at->root, at->hand_on, "+memory")) || mkdir(group, 0755) < 0)
        return false;
    if (has_limit(at))
        return true;
    rmdir(group);
    return false;
}

const char *memory_group_open(void)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (make_group(&versions[i])) {
            version = &versions[i];
            return NULL;
        }
    }
    return "no control group for memory can be made below /sys/fs/cgroup";
}

static void must_say(const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    ck_assert_msg(say(group, name, text), "%s/%s: %s", group, name, strerror(errno));
}

void memory_group_take(pid_t pid)
{
    must_say("cgroup.procs", (uint64_t)pid);
}

/* Whoever has swap does not kill; where there is none, there is nothing to forbid. Both together
 * may never be less than one, so whichever way the limit goes. */
void memory_group_limit(uint64_t bytes)
{
    char whole[32];
    snprintf(whole, sizeof whole, "%" PRIu64, version->swap_counts_all ? bytes : 0);
    say(group, version->swap, whole);
    must_say(version->limit, bytes);
    say(group, version->swap, whole);
}

bool memory_group_close(void)
{
    return rmdir(group) == 0;
}
