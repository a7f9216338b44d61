/* training.h - an executor that trains on this machine, and what it reports. */
#ifndef COORDINATOR_CLI_LOCAL_TRAINING_H
#define COORDINATOR_CLI_LOCAL_TRAINING_H

#include "coordinator/cli/progress.h"
#include "coordinator/cli/search.h"

struct training_result {
    uint64_t steps;
    double loss, heldout_loss; /* NAN: none */
    double step_time_s;        /* measured: a moving average */
    double tokens_per_s;
    char *sample; /* text from the trained model; NULL: none */
};

struct training_options {
    const struct offline *offline;
    struct progress *progress;
    bool steps_as_json;     /* print every step as an object on stdout */
    const char *checkpoint; /* replaces the job's checkpoint.dir; NULL: as the job says */
    bool resume;            /* from the newest checkpoint there */
    bool verbose;           /* show everything that the executor logs, not only what went wrong */
};

/* Train to the end or until a signal. An enum exit_code; the result is filled in any case, and the
 * caller finishes it. */
int training_run(const struct training_options *options, struct training_result *result,
                 struct error *err);
void training_result_finish(struct training_result *result);

#endif
