/* compare.h - compares two plans of one model and their predictions: the output of what-if and
 * why-not. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_COMPARE_H
#define COORDINATOR_CLI_COMMANDS_PLAN_COMPARE_H

#include "coordinator/cli/options.h"
#include "coordinator/planner/planner.h"

struct compared {
    const char *name; /* heads its column, as in "now", "then" */
    const struct planner_request *request;
    const struct plan *plan;
};

/* Print the predictions, where the time of a step goes (for the slowest stage, one micro-batch
 * after the other), and the differences between the plans. An enum exit_code. */
int compare_print(const struct common *common, const char *kind, const struct compared sides[2],
                  struct error *err);

#endif
