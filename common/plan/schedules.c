/* schedules.c - the table of schedules, and the assignment of slots to micro-batches in flight. */
#include "common/plan/schedule.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct schedule schedule_1f1b, schedule_gpipe;

const struct schedule *const schedules[] = {&schedule_1f1b, &schedule_gpipe, NULL};

const struct schedule *schedule_find(const char *name)
{
    for (int i = 0; schedules[i]; i++)
        if (strcmp(schedules[i]->name, name) == 0)
            return schedules[i];
    return NULL;
}

char *schedule_list(char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; schedules[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? ", %s" : "%s", schedules[i]->name);
    return out;
}

int schedule_events(const struct schedule *schedule, int stage, int stages, int micro_batches,
                    struct event *events)
{
    schedule->order(stage, stages, micro_batches, events);
    bool *taken = xcalloc((size_t)micro_batches, sizeof *taken);    /* per slot */
    int *slot_of = xcalloc((size_t)micro_batches, sizeof *slot_of); /* per micro-batch */
    int slots = 0, lowest = 0; /* all slots below `lowest` are taken */
    for (int i = 0; i < 2 * micro_batches; i++) {
        int *slot = &slot_of[events[i].micro_batch];
        if (events[i].direction == FORWARD) {
            while (taken[lowest])
                lowest++;
            *slot = lowest;
            slots = *slot >= slots ? *slot + 1 : slots;
        } else if (*slot < lowest) {
            lowest = *slot;
        }
        taken[*slot] = events[i].direction == FORWARD;
        events[i].slot = *slot;
    }
    free(taken);
    free(slot_of);
    return slots;
}
