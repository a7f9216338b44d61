/* crews.c - which executors are in an epoch together. */
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/simulation/cluster.h"

static struct crew **crews; /* none is empty */
static size_t crew_count, crew_capacity;

void crew_leave(struct executor *executor)
{
    struct crew *crew = executor->crew;
    size_t at = 0;
    executor->crew = NULL;
    if (!crew)
        return;
    while (crew->members[at] != executor)
        at++;
    crew->members[at] = crew->members[--crew->count];
    if (crew->count > 0)
        return;
    for (at = 0; crews[at] != crew;)
        at++;
    crews[at] = crews[--crew_count];
    free(crew->members);
    free(crew);
}

void crew_join(struct executor *executor)
{
    size_t at = 0;
    while (at < crew_count &&
           (crews[at]->epoch != executor->epoch || strcmp(crews[at]->job, executor->job) != 0))
        at++;
    if (at == crew_count) {
        crews = grow(crews, crew_count, &crew_capacity, sizeof *crews);
        crews[crew_count++] = xcalloc(1, sizeof(struct crew));
        crews[at]->epoch = executor->epoch;
        memcpy(crews[at]->job, executor->job, sizeof executor->job);
    }
    struct crew *crew = executor->crew = crews[at];
    crew->members = grow(crew->members, crew->count, &crew->capacity, sizeof executor);
    crew->members[crew->count++] = executor;
}

void crews_close(void)
{
    free(crews);
    crews = NULL;
    crew_count = crew_capacity = 0;
}
