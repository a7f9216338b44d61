/* derivative.h - the gradient of a whole model against finite differences of its loss. */
#ifndef TESTS_WORKER_INTERPRETER_DERIVATIVE_H
#define TESTS_WORKER_INTERPRETER_DERIVATIVE_H

#include "tests/support/engine.h"

/* For a third of the weights, and all that are tied: the derivative of the loss of step 0 along a
 * random direction of plus and minus ones, from the gradients that the plan's ranks assembled, and
 * by central differences under the same plan, of a step or of half of it. They must agree within a
 * hundredth of the gradient's length, which is what a random direction sees of it (an exactly zero
 * gradient: of the whole one's). */
void derivative_check(const struct graph *graph, const struct plan *plan,
                      const struct device *device, uint64_t seed, const char *name);

#endif
