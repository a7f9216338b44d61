/* searching.h - how far a search for a plan is, once it takes longer than one likes to wait without
 * a word. */
#ifndef COORDINATOR_CLI_PLANS_SEARCHING_H
#define COORDINATOR_CLI_PLANS_SEARCHING_H

#include "coordinator/planner/planner.h"

struct searching;

/* A thread that shows on stderr what the search writes there; NULL where there can be none, and
 * nothing is shown. */
struct searching *searching_begin(struct planner_progress *progress);
/* Takes the line away. Accepts NULL. */
void searching_end(struct searching *searching);

#endif
