/* gpipe.c - all forwards, then all backwards (Huang et al., arXiv 1811.06965). Every micro-batch
 * is in flight at once. */
#include "common/plan/schedule.h"

static void order(int stage, int stages, int micro_batches, struct event *events)
{
    (void)stage;
    (void)stages;
    for (int i = 0; i < micro_batches; i++) {
        events[i] = (struct event){.direction = FORWARD, .micro_batch = i};
        events[micro_batches + i] = (struct event){.direction = BACKWARD, .micro_batch = i};
    }
}

static int in_flight(int stage, int stages, int micro_batches)
{
    (void)stage;
    (void)stages;
    return micro_batches;
}

const struct schedule schedule_gpipe = {.name = "gpipe", .order = order, .in_flight = in_flight};
