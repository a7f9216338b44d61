/* demoresult.h - the final output of `gimbal demo`: predicted and measured figures. */
#ifndef COORDINATOR_CLI_DEMO_DEMORESULT_H
#define COORDINATOR_CLI_DEMO_DEMORESULT_H

#include "common/plan/plan.h"
#include "coordinator/cli/demo/mishap.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/progress.h"

/* Everything is lent. */
struct demoresult {
    const struct plan *plan;
    const struct progress_state *state; /* the last */
    const char *sample;                 /* text from the trained model; NULL: none */
    uint64_t executor_bytes;            /* highest resident memory of any executor */
    const struct mishap *mishap;        /* NULL: none was intended */
};

/* Print to stdout, as lines for people or as an object. */
void demoresult_print(const struct demoresult *result, enum output output);

#endif
