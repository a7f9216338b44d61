/* 1f1b.c - one forward, one backward in alternation (PipeDream-Flush, arXiv 2006.09503): stage i of
 * P begins with P - 1 - i forwards, so that at most P - i micro-batches are in flight. */
#include "common/plan/schedule.h"

static void order(int stage, int stages, int micro_batches, struct event *events)
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

static int in_flight(int stage, int stages, int micro_batches)
{
    return stages - stage < micro_batches ? stages - stage : micro_batches;
}

const struct schedule schedule_1f1b = {.name = "1f1b", .order = order, .in_flight = in_flight};
