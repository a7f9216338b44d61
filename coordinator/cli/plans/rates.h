/* rates.h - the devices that a plan's ranks run on, and how fast they are: what a prediction needs.
 */
#ifndef COORDINATOR_CLI_PLANS_RATES_H
#define COORDINATOR_CLI_PLANS_RATES_H

#include "coordinator/cli/client.h"
#include "coordinator/planner/planner.h"

struct rates {
    struct planner_device *devices; /* rank r's is devices[r] */
    struct profile *profiles;
    int count;
};

/* Of devices that are known here, lent. */
void rates_copy(const struct planner_device *devices, int count, struct rates *out);
/* Of the nodes that the coordinator knows. An enum exit_code; EXIT_PRECONDITION: a rank's device is
 * not there any more, or nobody knows how fast it is. */
int rates_ask(struct client *client, const struct plan *plan, struct rates *out, struct error *err);
/* Accepts a zeroed one. */
void rates_finish(struct rates *rates);

#endif
