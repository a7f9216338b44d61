/* hosts.c - compares hosts by their names. */
#include "coordinator/planner/costs/hosts.h"

#include <string.h>

bool hosts_same(const struct planner_device *a, const struct planner_device *b)
{
    return strcmp(a->host, b->host) == 0;
}

int hosts_share(const struct planner_device *devices, int count)
{
    int share = 1;
    while (share < count && hosts_same(&devices[share - 1], &devices[share]))
        share++;
    for (int i = 1; i < count; i++)
        if (hosts_same(&devices[i - 1], &devices[i]) != (i % share != 0))
            return 0;
    return count % share == 0 ? share : 0;
}
