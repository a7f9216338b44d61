/* counts.h - what a graph has and a program sends, counted for tests to compare with. */
#ifndef TESTS_SUPPORT_COUNTS_H
#define TESTS_SUPPORT_COUNTS_H

#include "common/graph/graph.h"
#include "common/program/program.h"

/* The elements of a tensor, for one sample. */
int64_t count_tensor(const struct graph *graph, int tensor);
/* The elements of all weights together; tied weights count once. */
int64_t count_parameters(const struct graph *graph);
/* The words (elements) that this rank sends in a whole training step. */
int64_t count_words(const struct program *program);

#endif
