/* collective.c - the table of collective libraries, and what they share. */
#include "worker/collectives/collective.h"
#include "worker/collectives/reduce.h"

#include <string.h>

const struct collectives *const collective_libraries[] = {
    &collectives_local,
#ifdef HAVE_GLOO
    &collectives_gloo,
#endif
    NULL,
};

const struct collectives *collectives_find(const char *name)
{
    for (int i = 0; collective_libraries[i]; i++)
        if (strcmp(collective_libraries[i]->name, name) == 0)
            return collective_libraries[i];
    return NULL;
}

void collective_chunk(size_t count, int members, int index, size_t *low, size_t *high)
{
    /* Written so that count * index cannot overflow. */
    size_t whole = count / (size_t)members, rest = count % (size_t)members;
    *low = whole * (size_t)index + rest * (size_t)index / (size_t)members;
    *high = whole * (size_t)(index + 1) + rest * (size_t)(index + 1) / (size_t)members;
}
