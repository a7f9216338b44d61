/* searches.c - the family of searches. */
#include "coordinator/planner/planner.h"

#include <string.h>

extern const struct search search_autoddl, search_bmw, search_exact, search_exhaustive,
    search_tensoropt, search_uniform;

const struct search *const searches[] = {
    &search_exact,   &search_uniform,    &search_bmw, &search_tensoropt,
    &search_autoddl, &search_exhaustive, NULL};

const struct search *search_find(const char *name)
{
    for (int i = 0; searches[i]; i++)
        if (strcmp(searches[i]->name, name) == 0)
            return searches[i];
    return NULL;
}
