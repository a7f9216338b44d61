/* demoresult.h - what `gimbal demo` has to show in the end: predicted beside measured. */
#ifndef COORDINATOR_CLI_DEMO_DEMORESULT_H
#define COORDINATOR_CLI_DEMO_DEMORESULT_H

#include "common/plan/plan.h"
#include "coordinator/cli/demo/mishap.h"
#include "coordinator/cli/following/progress.h"
#include "coordinator/cli/output.h"

/* All of it is lent. */
struct demoresult {
    const struct plan *plan;
    const struct progress_state *state; /* the last */
    const char *sample;                 /* text from the trained model; NULL: none */
    uint64_t executor_bytes;            /* highest resident memory of any executor */
    const struct mishap *mishap;        /* NULL: none was to be */
};

/* On stdout, as lines for people or as an object. */
void demoresult_print(const struct demoresult *result, enum output output);

#endif
