/* events.h - a step as forwards and backwards of stages: the simulation of plans that are too
 * large to be lowered for every rank. */
#ifndef COORDINATOR_PLANNER_COSTS_EVENTS_H
#define COORDINATOR_PLANNER_COSTS_EVENTS_H

#include "coordinator/planner/costs/evaluate.h"

/* Seconds of a step: each stage runs its schedule's order, a forward once the stage before has
 * done its own, a backward once the stage after has; then what happens once. *busy_s (optional):
 * of all this the mean over the stages that is not waiting. */
double events_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s);

/* Blocks that all ranks of a plan run in a step, forward and backward. */
int64_t events_block_runs(int ranks, int blocks, int stages, int micro_batches);
/* Is a plan so large that events say how long it takes? */
bool events_judge(int ranks, int blocks, int stages, int micro_batches);
/* By events no step takes less than this share of the closed form, however unequal its stages.
 *
 * Let L be the longest of p stages, with F and B of a micro-batch, and s the most micro-batches in
 * flight on any. Before its first backward L has waited until a micro-batch had passed all stages,
 * and has run s forwards at most; before its last forward it has run all but s of its backwards.
 * So of Sum T + (m - 1) (F + B) + u, u once a step on whichever stage, no more than (s - 1) of
 * max(F, B) can be saved; and L alone takes m (F + B). One stage takes just what the form says. */
double events_share(const struct schedule *schedule, int stages, int micro_batches);

#endif
