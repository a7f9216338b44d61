/* schedule.c - the schedules, and the assignment of slots to micro-batches in flight. */
#include "common/plan/schedule.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One forward, one backward in alternation (PipeDream-Flush, arXiv 2006.09503): stage i of
 * P begins with P - 1 - i forwards, so that at most P - i micro-batches are in flight. */
static void order_1f1b(int stage, int stages, int micro_batches, struct event *events)
{
    int ahead = stages - 1 - stage, forward = 0, backward = 0, count = 0;
    if (ahead > micro_batches)
        ahead = micro_batches;
    while (forward < ahead)
        events[count++] = (struct event){.direction = FORWARD, .micro_batch = forward++};
    while (backward < micro_batches) {
        if (forward < micro_batches)
            events[count++] = (struct event){.direction = FORWARD, .micro_batch = forward++};
        events[count++] = (struct event){.direction = BACKWARD, .micro_batch = backward++};
    }
}

static int in_flight_1f1b(int stage, int stages, int micro_batches)
{
    return stages - stage < micro_batches ? stages - stage : micro_batches;
}

/* All forwards, then all backwards (Huang et al., arXiv 1811.06965). Every micro-batch is in flight
 * at once. */
static void order_gpipe(int stage, int stages, int micro_batches, struct event *events)
{
    (void)stage;
    (void)stages;
    for (int i = 0; i < micro_batches; i++) {
        events[i] = (struct event){.direction = FORWARD, .micro_batch = i};
        events[micro_batches + i] = (struct event){.direction = BACKWARD, .micro_batch = i};
    }
}

static int in_flight_gpipe(int stage, int stages, int micro_batches)
{
    (void)stage;
    (void)stages;
    return micro_batches;
}

static const struct schedule rows[] = {
    {"1f1b", order_1f1b, in_flight_1f1b},
    {"gpipe", order_gpipe, in_flight_gpipe},
};

const struct schedule *const schedules[] = {&rows[0], &rows[1], NULL};

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
