/* searching.h - shows the progress of a plan search that takes longer than one would wait in
 * silence. */
#ifndef COORDINATOR_CLI_PLANS_SEARCHING_H
#define COORDINATOR_CLI_PLANS_SEARCHING_H

#include "coordinator/planner/planner.h"

struct searching;

/* Start a thread that shows on stderr what the search writes to `progress`. NULL if that is
 * impossible; then nothing is shown. */
struct searching *searching_begin(struct planner_progress *progress);
/* Stop, and remove the line. Accepts NULL. */
void searching_end(struct searching *searching);

#endif
