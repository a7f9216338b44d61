/* shares.h - by how many devices a block's work can be divided, and how evenly at best. */
#ifndef COORDINATOR_PLANNER_EXACT_SHARES_H
#define COORDINATOR_PLANNER_EXACT_SHARES_H

#include "coordinator/planner/costs/costs.h"

/* Which numbers of devices can divide blocks otherwise than by samples, found as asked for. It
 * depends on the roles that are offered, so it has to be forgotten when these change. */
struct splits {
    struct costs *costs;
    signed char *known; /* [place of the short model][devices - 1]: 1 yes, -1 no; 0: not known */
};

void splits_init(struct splits *splits, struct costs *costs);
void splits_finish(struct splits *splits);
/* Whether so many devices can divide a block so that all have the same samples; and a mesh of them,
 * an axis for each prime, of which there are AXES_MAX at most. */
bool splits_may(struct splits *splits, int place, int devices);
struct mesh shares_mesh(int devices);
/* Divide the work of a block on a micro-batch among `devices`: some device has at least this share.
 * Infinity: they cannot divide it. An axis of the mesh splits either the samples, of which each
 * device has a whole number, or another dim, which it has to divide. place: of the short model. */
double shares_least(struct splits *splits, int place, int64_t samples, int devices);

#endif
