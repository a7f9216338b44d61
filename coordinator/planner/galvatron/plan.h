/* plan.h - plans in that project's terms: read from its files and from those of its results,
 * printed, and turned into plans of ours and back.
 *
 * A strategy is written pp-tp-dp: '*' after tp says that the ranks of a tensor group are adjacent,
 * '*' after dp that they are strided, 'f' after dp zero 3, "-c" recomputation, "-sp" Ulysses:
 * "2-2*-4f-c". */
#ifndef COORDINATOR_PLANNER_GALVATRON_PLAN_H
#define COORDINATOR_PLANNER_GALVATRON_PLAN_H

#include "common/plan/plan.h"
#include "coordinator/planner/galvatron/cost.h"

#define GALVATRON_STRATEGY_SIZE 48

void galvatron_plan_finish(struct galvatron_plan *plan);

/* Whether the file holds a plan in their terms: an object, or the member "plan" of one, that has
 * pp_deg. */
bool galvatron_plan_is(const char *path);
/* Read such a file: with strategies as above, or as that project's search writes it
 * (tp_sizes_enc and so on). -EINVAL with file and key. The caller finishes *out. */
int galvatron_plan_read(const char *path, const struct galvatron_spec *spec,
                        struct galvatron_plan *out, struct error *err);
/* The whole plan; owned by the caller. */
json_t *galvatron_plan_encode(const struct galvatron_plan *plan);
/* "2-2*-4f-c x 12, 2-1-8 x 12 in 11+13 m4 vtp1", truncated to size; returns out. */
char *galvatron_plan_print(char *out, size_t size, const struct galvatron_plan *plan);
char *galvatron_strategy_print(char out[GALVATRON_STRATEGY_SIZE],
                               const struct galvatron_strategy *strategy, int pp);
/* false: it is none. `zero` is that of data parallelism without 'f'. */
bool galvatron_strategy_parse(const char *text, int zero, int *pp, struct galvatron_strategy *out);

/* The same division of a model of ours; the caller owns it. NULL: our programs cannot divide so,
 * err says why. */
struct plan *galvatron_plan_ours(const struct galvatron_plan *plan,
                                 const struct galvatron_spec *spec, bool split_sequences,
                                 struct error *err);
/* A plan of ours in their terms. -ENOTSUP: the formula does not know something that it uses. */
int galvatron_plan_theirs(const struct plan *plan, const struct galvatron_spec *spec,
                          struct galvatron_plan *out, struct error *err);

#endif
