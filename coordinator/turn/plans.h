/* plans.h - when plans are searched for, and on which devices: for an epoch that is about to start
 * (epoch.c), and beside one that runs (ahead.c). */
#ifndef COORDINATOR_TURN_PLANS_H
#define COORDINATOR_TURN_PLANS_H

#include "coordinator/turn/state.h"

/* Parse the job's text and build its graph into the request; -EINVAL: it is no longer
 * understood. */
int epoch_read_job(const struct job *job, struct planning_request *request, struct error *err);
/* Have the job's epoch planned. The answer is an event of this turn or, when a search has found it,
 * of a later one. */
void epoch_plan(struct state *state, const struct job *job);

/* At the end of a turn, if growth_due is set: would a running job be better off on more devices? */
void ahead_consider_growth(struct state *state);
/* Devices of a running job have become slower or faster since it was planned. */
void ahead_plan_again(struct state *state, const struct job *job);
/* Once the job trains, ask whether there is a better plan now that its links are known. */
void ahead_weigh_links(struct state *state, const struct job *job);
/* The job's epoch has finished a step; and devices may have changed. */
void ahead_begin_spares(struct state *state, const struct job *job);
void ahead_consider_spares(struct state *state);
/* Devices are not what they were, so plans for them are void. */
void ahead_forget_spares(struct state *state);

#endif
