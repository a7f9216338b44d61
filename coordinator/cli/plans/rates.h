/* rates.h - the devices that a plan's ranks run on and their speeds, as predictions need them. */
#ifndef COORDINATOR_CLI_PLANS_RATES_H
#define COORDINATOR_CLI_PLANS_RATES_H

#include "coordinator/cli/client.h"
#include "coordinator/planner/planner.h"

struct rates {
    struct planner_device *devices; /* [rank] */
    struct profile *profiles;
    int count;
};

/* Copy devices that are known here; what they refer to is lent. */
void rates_copy(const struct planner_device *devices, int count, struct rates *out);
/* Look up the plan's devices among the coordinator's nodes. An enum exit_code; EXIT_PRECONDITION:
 * the device of a rank is gone, or its speed is unknown. */
int rates_ask(struct client *client, const struct plan *plan, struct rates *out, struct error *err);
/* Accepts a zeroed struct. */
void rates_finish(struct rates *rates);

#endif
