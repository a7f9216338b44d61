/* plantable.h - prints a plan as tables: its stages, and what each block occupies. */
#ifndef COORDINATOR_CLI_TABLES_PLANTABLE_H
#define COORDINATOR_CLI_TABLES_PLANTABLE_H

#include "coordinator/cli/options.h"
#include "coordinator/cli/planned.h"

/* Bytes of a block are those of the first rank of its stage: what it stores of weights, moments and
 * gradients, and what all micro-batches in flight save for the backward pass. A negative errno as
 * of lower(). */
int plantable_print(const struct common *common, const struct planned *planned, FILE *out,
                    struct error *err);

#endif
