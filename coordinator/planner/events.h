/* events.h - a step as forwards and backwards of stages: the simulation of plans that are too
 * large to be lowered for every rank. */
#ifndef COORDINATOR_PLANNER_EVENTS_H
#define COORDINATOR_PLANNER_EVENTS_H

#include "coordinator/planner/evaluate.h"

/* Seconds of a step: each stage runs its schedule's order, a forward once the stage before has
 * done its own, a backward once the stage after has; then what happens once. *busy_s (optional):
 * of all this the mean over the stages that is not waiting. */
double events_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s);

#endif
