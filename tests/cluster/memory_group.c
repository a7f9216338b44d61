/* memory_group.c - see memory_group.h. */
#include "tests/cluster/memory_group.h"

#include "tests/cluster/control_group.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const limits[CONTROL_GROUP_VERSIONS] = {"memory.limit_in_bytes", "memory.max"};
static const char *const swaps[CONTROL_GROUP_VERSIONS] = {"memory.memsw.limit_in_bytes",
                                                          "memory.swap.max"};

static struct control_group group;

const char *memory_group_open(void)
{
    return control_group_open(&group, "memory", limits);
}

void memory_group_take(pid_t pid)
{
    control_group_take(&group, pid);
}

/* Whoever has swap does not kill; where there is none, there is nothing to forbid. Version 1 has a
 * limit of memory and swap together, which may never be less than that of memory, so whichever way
 * the limit goes. */
void memory_group_limit(uint64_t bytes)
{
    char text[32], swap[32];
    snprintf(text, sizeof text, "%" PRIu64, bytes);
    snprintf(swap, sizeof swap, "%" PRIu64, group.version == CONTROL_GROUP_1 ? bytes : 0);
    control_group_say(&group, swaps[group.version], swap);
    ck_assert_msg(control_group_say(&group, limits[group.version], text), "%s: %s", group.folder,
                  strerror(errno));
    control_group_say(&group, swaps[group.version], swap);
}

bool memory_group_close(void)
{
    return control_group_close(&group);
}
