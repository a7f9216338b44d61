/* collective.c - the table of collective libraries, which modules with one of them do not link. */
#include "worker/collectives/collective.h"

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
