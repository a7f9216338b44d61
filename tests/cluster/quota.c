/* quota.c - see quota.h. */
#include "tests/cluster/quota.h"

#include "tests/cluster/control_group.h"

#include <stddef.h>

static const char *const limits[CONTROL_GROUP_VERSIONS] = {"cpu.cfs_quota_us", "cpu.max"};
/* Of a period of 100 ms. */
static const char *const halves[CONTROL_GROUP_VERSIONS] = {"50000", "50000 100000"};

static struct control_group group;

const char *quota_open(void)
{
    const char *why = control_group_open(&group, "cpu", limits);
    if (why || control_group_say(&group, limits[group.version], halves[group.version]))
        return why;
    control_group_close(&group);
    return "this machine lets nobody limit a group's processor time";
}

void quota_limit(pid_t pid)
{
    control_group_take(&group, pid);
}

void quota_lift(pid_t pid)
{
    control_group_release(&group, pid);
}

bool quota_close(void)
{
    return control_group_close(&group);
}
