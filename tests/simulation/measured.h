/* measured.h - how long things take in a simulated cluster: drawn from the seed, or, in a cluster
 * that was measured, as it was.
 *
 * In a measured world one job trains on all nodes, of one device each, for as long as it lasts.
 * Nothing goes wrong but that its executors die, every other one with its worker, at exponential
 * times; a worker comes back after a while. What becomes of that is up to the real coordinator. */
#ifndef TESTS_SIMULATION_MEASURED_H
#define TESTS_SIMULATION_MEASURED_H

#include <stdint.h>

struct executor;

enum duration {
    DURATION_QUIESCE, /* an executor leaves its epoch, once it is asked to */
    DURATION_PLAN,    /* a search */
    DURATION_PREPARE, /* an executor gets ready for its epoch */
    DURATION_REDUCE,  /* of a step, beside its forward and backward */
    DURATION_APPLY,
    DURATION_END,    /* what is left to do after the last step */
    DURATION_RETURN, /* a worker is started again */
    DURATIONS
};

struct measured {
    unsigned nodes;
    uint64_t of_ms[DURATIONS];
    uint64_t step_ms, first_step_ms; /* on all nodes; and more on fewer. The first of an epoch */
    double between_s;                /* two losses, on average; infinity: none */
    uint64_t time_ms;                /* that the world lasts */
};

uint64_t duration_ms(enum duration what);
/* Of a step's forward and backward, on that many devices; and of what the executor's next one takes
 * beside that because it is the first of its epoch. */
uint64_t duration_step_ms(const char *job_yaml, unsigned devices);
uint64_t duration_first_ms(const struct executor *executor);

/* Submit the job and begin to lose; called by a measured world only. */
void measured_begin(void);

#endif
