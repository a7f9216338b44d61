/* search.h - the best plan by that project's accounting: of its own space by its formula, or of a
 * space with stages of any size by simulation. */
#ifndef COORDINATOR_PLANNER_GALVATRON_SEARCH_H
#define COORDINATOR_PLANNER_GALVATRON_SEARCH_H

#include "coordinator/planner/galvatron/plan.h"

#include <stdatomic.h>

/* GALVATRON_FORMULA: what that project looks for. Degrees are powers of two. Layers of one type are
 * divided evenly over the stages, with the remainder in the last one; layers of several types by
 * memory, as it does it (galvatron_divide). The pipeline's formula decides.
 * GALVATRON_NEUTRAL: the same points and strategies with any division of the layers; the simulation
 * of galvatron_neutral() decides. */
enum galvatron_goal { GALVATRON_FORMULA, GALVATRON_NEUTRAL };

/* Search for the spec's batch on all of its devices; by simulation the answer is no worse than the
 * one by the formula. stop (optional): set when the answer is no longer wanted. -ENOSPC:
 * no plan fits, err names the least memory with which one would; -EINVAL: none is possible, or
 * the profile lacks what all of them need; -ECANCELED. The caller finishes *out after success. */
int galvatron_search(const struct galvatron_problem *problem, enum galvatron_goal goal,
                     const atomic_bool *stop, struct galvatron_plan *out, struct error *err);

/* The layers of each stage as that project divides them; -EINVAL: it cannot. */
int galvatron_divide(const struct galvatron_problem *problem, const struct galvatron_point *point,
                     int *division, struct error *err);

#endif
