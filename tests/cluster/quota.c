/* quota.c - see quota.h. */
#include "tests/cluster/quota.h"

#include "tests/cluster/control_group.h"

#include <check.h>
#include <stdio.h>

static const char *const limits[CONTROL_GROUP_VERSIONS] = {"cpu.cfs_quota_us", "cpu.max"};
/* The period that both versions begin with. */
enum { PERIOD_US = 100000, LEAST_US = 1000 };

static struct control_group group;

static bool set(int quota_us)
{
    char words[32];
    snprintf(words, sizeof words, "%d", quota_us);
    return control_group_say(&group, limits[group.version], words);
}

const char *quota_open(void)
{
    const char *why = control_group_open(&group, "cpu", limits);
    if (why || set(PERIOD_US))
        return why;
    control_group_close(&group);
    return "this machine lets nobody limit a group's processor time";
}

void quota_limit(pid_t pid, double processors)
{
    int quota_us = (int)(processors * PERIOD_US);
    ck_assert(set(quota_us > LEAST_US ? quota_us : LEAST_US));
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
