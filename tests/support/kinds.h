/* kinds.h - what the nodes of all model families compute: every operation along every choice of
 * dims that a family has, each once. A new family or node is among them by itself. */
#ifndef TESTS_SUPPORT_KINDS_H
#define TESTS_SUPPORT_KINDS_H

#include "common/graph/graph.h"

int kind_count(void);
/* A node of a small model; its sizes, epsilon and so on may be replaced in a copy. */
const struct node *kind_at(int index);
/* By the name of the node: "qkv". Ends the program with words where no family has such a node. */
const struct node *kind_find(const char *name);

/* A copy with these sizes; keys have as many positions (t) as queries (s) where sizes do not say.
 */
struct node kind_sized(const struct node *kind, const struct sizes *sizes);

/* The box of a whole tensor along these dims. */
struct box box_along(const char *dims, const struct sizes *sizes);

/* ---- the operands, and behind them the statistics of a direction, by slots ---- */

int slot_count(const struct operation *operation, bool gradient);
/* The dims of a slot; of a statistic written to `out`. */
const char *slot_dims(const struct node *node, bool gradient, int slot, char out[DIMS_MAX + 1]);
/* Whether it is there before the kernel runs. */
bool slot_is_given(const struct operation *operation, bool gradient, int slot);

#endif
