/* tally.c - see tally.h. */
#include "coordinator/service/tally.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A linear search will do: there are a few dozen kinds, all of them ours. */
void tally_event(struct service_tally *tally, const char *kind)
{
    size_t i = 0;
    while (i < tally->event_count && strcmp(tally->events[i].kind, kind) != 0)
        i++;
    if (i == tally->event_count) {
        tally->events = grow(tally->events, i, &tally->event_capacity, sizeof *tally->events);
        snprintf(tally->events[i].kind, TALLY_KIND_SIZE, "%s", kind);
        tally->event_count++;
    }
    tally->events[i].count++;
}

void tally_finish(struct service_tally *tally)
{
    free(tally->events);
}
