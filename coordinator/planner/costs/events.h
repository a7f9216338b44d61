/* events.h - simulates a step as forwards and backwards of whole stages, for plans that are too
 * large to be lowered for every rank. */
#ifndef COORDINATOR_PLANNER_COSTS_EVENTS_H
#define COORDINATOR_PLANNER_COSTS_EVENTS_H

#include "coordinator/planner/costs/evaluate.h"

/* Seconds of a step. Each stage runs in the order of its schedule: a forward once the stage before
 * has done its own, a backward once the stage after has; then what happens once per step. *busy_s
 * (optional): mean over the stages of the time not spent waiting. */
double events_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s);

/* How many times a block is run in a step, forward and backward, over all ranks of a plan. */
int64_t events_block_runs(int ranks, int blocks, int stages, int micro_batches);
/* Whether a plan is so large that it is judged by events instead of programs. */
bool events_judge(int ranks, int blocks, int stages, int micro_batches);
/* Simulated by events, a step takes at least this share of the closed form of evaluate.h, however
 * unequal its stages are.
 *
 * Let L be the slowest of p stages, with F and B per micro-batch, and s the most micro-batches in
 * flight on any stage. Before its first backward L has waited until a micro-batch has passed all
 * stages, and has run s forwards at most; before its last forward it has run all but s of its
 * backwards. So of sum T + (m - 1) (F + B) + u, with u once per step on any stage, no more than (s
 * - 1) max(F, B) can be saved; and L alone takes m (F + B). A single stage takes exactly the closed
 * form. */
double events_share(const struct schedule *schedule, int stages, int micro_batches);
/* Simulated by events, a step of several stages takes at least sum T + (m - 1 - a) (F + B) + a B +
 * u, with a as returned, F and B of any stage and u of the first one.
 *
 * Let s be the most micro-batches in flight on any stage. The first backward on stage L starts once
 * a micro-batch has passed all stages up to there: forwards of the stages before and of L, then all
 * of the stages behind. By then L has run s forwards at most, so m - s forwards and m backwards are
 * left, and the last of these has to pass the stages before, too. That is sum T + (m - s) F + (m -
 * 1) B, and u follows on the first stage: a = s - 1.
 *
 * If all m are in flight on the last stage at once, it has run all forwards before its first
 * backward. These take the pipeline sum F + (m - 1) F of L or longer, and the backwards, of which
 * none starts before, sum B + (m - 1) B: a = 0. */
int events_ahead(const struct schedule *schedule, int stages, int micro_batches);

#endif
