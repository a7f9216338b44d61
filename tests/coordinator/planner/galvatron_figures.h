/* galvatron_figures.h - figures for Galvatron's formula that can be reckoned with by hand. */
#ifndef TESTS_COORDINATOR_PLANNER_GALVATRON_FIGURES_H
#define TESTS_COORDINATOR_PLANNER_GALVATRON_FIGURES_H

#include "coordinator/planner/galvatron/cost.h"

#define MB 1048576.0
#define EXACT 1e-12

/* A sample's activations between layers are 1 MB: 16 x 16384 words. */
static const struct galvatron_profile profile = {
    .layer = {.items = {{1, 2.0}, {4, 1.5}}, .count = 2},
    .other = {.items = {{0, 1.0}}, .count = 1},
    .parameter_mb = 48,
    .activation_mb = {10, 6, 4},
    .checkpoint_mb = 2,
    .alone = {{100, 60, 40}, {8, 5, 3}},
    .first = {{50, 30, 20}, {4, 3, 2}},
    .last = {{60, 35, 20}, {3, 2, 1}},
    .allreduce_gb_s = {{0, 50}, {0, 100, 8}},
    .p2p_gb_s = {0, 20, 10},
    .overlap = 1.25,
};
static const struct galvatron_problem problem = {
    .profile = &profile, .hidden = 16384, .seq = 16, .layers = 2, .memory_bytes = 1ull << 40};

#endif
