/* members.c - checks and names members and peers. */
#include "worker/collectives/members.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int collective_members_check(const int *ranks, int count, int rank, int world, int *me,
                             struct error *err)
{
    if (count < 1)
        return error_set(err, -EINVAL, "a group of %d ranks: at least 1 is needed", count);
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= world)
            return error_set(err, -EINVAL, "a group of rank %d: there are %d ranks", ranks[i],
                             world);
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return error_set(err, -EINVAL, "a group with rank %d twice", ranks[i]);
        if (ranks[i] == rank)
            found = i;
    }
    if (found < 0) {
        char *name = collective_members_print(ranks, count);
        error_set(err, -EINVAL, "rank %d is no member of group %s", rank, name);
        free(name);
        return -EINVAL;
    }
    *me = found;
    return 0;
}

char *collective_members_print(const int *ranks, int count)
{
    size_t size = (size_t)count * 12 + 3, used = 0;
    char *text = xcalloc(size, 1);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%c%d", i ? ',' : '{', ranks[i]);
    snprintf(text + used, size - used, "}");
    return text;
}

int collective_peer_check(const char *call, int peer, int rank, int world, struct error *err)
{
    if (peer < 0 || peer >= world)
        return error_set(err, -EINVAL, "%s: no rank %d among %d", call, peer, world);
    if (peer == rank)
        return error_set(err, -EINVAL, "%s: rank %d is this rank itself", call, peer);
    return 0;
}
