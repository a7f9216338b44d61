/* small_families.h - one small model of each family, and what becomes of it on one rank: what
 * training under plans and on devices is compared with. */
#ifndef TESTS_WORKER_INTERPRETER_SMALL_FAMILIES_H
#define TESTS_WORKER_INTERPRETER_SMALL_FAMILIES_H

#include "common/models/model.h"
#include "tests/support/engine.h"

enum { FAMILIES = 5, FAMILIES_SAMPLES = 8, FAMILIES_STEPS = 4 };
#define FAMILIES_IGNORED 0.2 /* of the targets */

extern const struct job_model families[FAMILIES];

/* Their graphs, which compute in such elements. */
void families_build(enum element element, struct graph *graphs[FAMILIES]);
/* Each on one rank, of plain C. */
void families_train(struct graph *const graphs[FAMILIES], struct engine_result results[FAMILIES]);
void families_finish(struct graph *graphs[FAMILIES]);
void families_forget(struct engine_result results[FAMILIES]);

/* NULL: this machine has no such device, which is printed. */
const struct device *families_cuda(void);

#endif
