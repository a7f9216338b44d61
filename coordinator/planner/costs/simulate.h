/* simulate.h - judges one plan: by simulation of the programs of its ranks, instruction by
 * instruction, or, if it is too large for that, by events: the forwards and backwards of whole
 * stages. */
#ifndef COORDINATOR_PLANNER_COSTS_SIMULATE_H
#define COORDINATOR_PLANNER_COSTS_SIMULATE_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/costs/evaluate.h"

/* Lower, simulate and append one plan, with the devices' profiles as they are (`cores` is not
 * looked at). Earlier predictions in it are discarded. -EINVAL: it needs more devices than there
 * are, is for another global batch, or cannot be lowered or priced. Takes ownership of the plan,
 * also on failure. */
int simulate_programs(const struct planner_request *request, struct plan *plan,
                      struct planner_result *out, struct error *err);
/* Judge one plan and append it: by its programs, or by its stages if it is large. Several roads may
 * lead to a plan; one that is a candidate already is dropped. Takes ownership of the plan. */
int simulate_plan(struct costs *costs, struct plan *plan, struct planner_result *out,
                  struct error *err);
/* The candidate that is this plan, lent until another is appended; NULL: it has not been judged.
 * Assigns the plan's devices. */
struct candidate *simulate_known(const struct planner_request *request, struct plan *plan,
                                 const struct planner_result *out);
/* Whether simulate_plan() judges a plan by its stages, and how many times a block is run in its
 * step, forward and backward, over all ranks. */
bool simulate_is_large(const struct plan *plan);
int64_t simulate_block_runs(const struct plan *plan);

/* Lower the plan for every rank; rank r runs on device r of the request. `programs` has room for
 * all ranks and is zeroed. Ranks that are sure to behave alike share a program: programs[r] is then
 * that of an earlier rank. Returns a negative errno of lower_with() on failure; either way the
 * caller calls all_ranks_destroy(). */
int all_ranks_lower(const struct planner_request *request, const struct plan *plan,
                    struct program **programs, struct error *err);
/* Destroys the programs, each once, and frees the array itself. */
void all_ranks_destroy(struct program **programs, int ranks);

/* Whether ranks that program_like() considers alike also do the same at the same time. Rank r runs
 * on device r of the request. */
bool like_ranks_keep_pace(const struct planner_request *request, const struct plan *plan);

/* Seconds of a step. Each stage runs in the order of its schedule: a forward once the stage before
 * has done its own, a backward once the stage after has; then what happens once per step. *busy_s
 * (optional): mean over the stages of the time not spent waiting. */
double stages_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s);

/* Whether a plan is so large that it is judged by its stages instead of its programs. */
bool stages_judge(int ranks, int blocks, int stages, int micro_batches);
/* Simulated by events, a step takes at least this share of the closed form of evaluate.h, however
 * unequal its stages are.
 *
 * Let L be the slowest of p stages, with F and B per micro-batch, and s the most micro-batches in
 * flight on any stage. Before its first backward L has waited until a micro-batch has passed all
 * stages, and has run s forwards at most; before its last forward it has run all but s of its
 * backwards. So of sum T + (m - 1) (F + B) + u, with u once per step on any stage, no more than (s
 * - 1) max(F, B) can be saved; and L alone takes m (F + B). A single stage takes exactly the closed
 * form. */
double stages_share(const struct schedule *schedule, int stages, int micro_batches);
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
int stages_ahead(const struct schedule *schedule, int stages, int micro_batches);

#endif
