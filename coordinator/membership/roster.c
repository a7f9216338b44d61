/* roster.c - the workers' records, sorted by name. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/membership/internal.h"

struct membership *membership_create(const struct membership_config *config)
{
    assert(membership_config_check(config, NULL) == 0);
    struct membership *membership = xcalloc(1, sizeof *membership);
    membership->config = *config;
    return membership;
}

void membership_destroy(struct membership *membership)
{
    if (!membership)
        return;
    for (size_t i = 0; i < membership->count; i++)
        worker_destroy(membership->workers[i]);
    free(membership->workers);
    free(membership);
}

/* The index of the name, or where it would be inserted. */
static size_t place(const struct membership *membership, const char *name, bool *found)
{
    size_t low = 0, high = membership->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(membership->workers[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

struct worker *membership_lookup(const struct membership *membership, const char *name)
{
    bool found;
    size_t index = place(membership, name, &found);
    return found ? membership->workers[index] : NULL;
}

void membership_insert(struct membership *membership, struct worker *worker)
{
    bool found;
    size_t index = place(membership, worker->name, &found);
    assert(!found);
    membership->workers = grow(membership->workers, membership->count, &membership->capacity,
                               sizeof(*membership->workers));
    memmove(&membership->workers[index + 1], &membership->workers[index],
            (membership->count - index) * sizeof(*membership->workers));
    membership->workers[index] = worker;
    membership->count++;
}

struct worker *membership_add(struct membership *membership, const char *name)
{
    struct worker *worker = xcalloc(1, sizeof *worker);
    snprintf(worker->name, sizeof worker->name, "%s", name);
    worker->dead = true;
    membership_insert(membership, worker);
    return worker;
}

size_t membership_count(const struct membership *membership)
{
    return membership->count;
}

const struct worker *membership_at(const struct membership *membership, size_t index)
{
    assert(index < membership->count);
    return membership->workers[index];
}

const struct worker *membership_find(const struct membership *membership, const char *name)
{
    return membership_lookup(membership, name);
}
