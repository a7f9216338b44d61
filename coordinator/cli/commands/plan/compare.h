/* compare.h - two plans of one model, and what each is predicted to take: the answer of what-if and
 * why-not. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_COMPARE_H
#define COORDINATOR_CLI_COMMANDS_PLAN_COMPARE_H

#include "coordinator/cli/options.h"
#include "coordinator/planner/planner.h"

struct compared {
    const char *name; /* "now", "then": heads its column */
    const struct planner_request *request;
    const struct plan *plan;
};

/* Predictions, where the time of a step goes (of the stage that takes longest, one micro-batch
 * after the other), and the differences of the plans. An enum exit_code. */
int compare_print(const struct common *common, const char *kind, const struct compared sides[2],
                  struct error *err);

#endif
