/* schedules.c - the family of schedules, and slots for micro-batches in flight. */
#include "common/plan/schedule.h"

#include "common/base/memory.h"

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

int schedule_events(const struct schedule *schedule, int stage, int stages, int micro_batches,
                    struct event *events)
{
    schedule->order(stage, stages, micro_batches, events);
    int *holder = xcalloc((size_t)micro_batches, sizeof *holder); /* slot -> micro-batch + 1 */
    int slots = 0;
    for (int i = 0; i < 2 * micro_batches; i++) {
        int wanted = events[i].direction == FORWARD ? 0 : events[i].micro_batch + 1, slot = 0;
        while (slot < slots && holder[slot] != wanted)
            slot++;
        if (slot == slots)
            slots++;
        holder[slot] = events[i].direction == FORWARD ? events[i].micro_batch + 1 : 0;
        events[i].slot = slot;
    }
    free(holder);
    return slots;
}
