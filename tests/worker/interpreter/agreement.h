/* agreement.h - what every plan owes: the training of one rank. */
#ifndef TESTS_WORKER_INTERPRETER_AGREEMENT_H
#define TESTS_WORKER_INTERPRETER_AGREEMENT_H

#include "tests/support/engine.h"

/* Trains the model of this name under the plan. Every loss has to be that of `one` up to a hundred
 * thousandth, and so has every gradient of the first step, of its norm or of the floor; and each
 * rank has to send as many words as its program says, where they are counted. *out is yours. */
void agreement_check(const char *model, const struct graph *graph, const struct plan *plan,
                     const struct engine_options *options, const struct engine_result *one,
                     const char *name, struct engine_result *out);

#endif
