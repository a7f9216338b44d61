/* evaluations.h - the losses of one job on held-out data, and the newest text sampled from its
 * model. */
#ifndef COORDINATOR_TELEMETRY_EVALUATIONS_H
#define COORDINATOR_TELEMETRY_EVALUATIONS_H

#include <stddef.h>
#include <stdint.h>

#define EVALUATIONS_MAX 10000      /* the newest are kept */
#define EVALUATIONS_TEXT_MAX 65536 /* bytes of a sample; the rest is cut off */

struct evaluation {
    uint64_t step;
    double loss;
};

/* Initialize to zero. */
struct evaluations {
    struct evaluation *items; /* oldest first */
    size_t count, capacity;
    char *text; /* bytes as received, not terminated; NULL if there is none */
    size_t text_size;
};
void evaluations_finish(struct evaluations *evaluations);

/* Add a loss. If the job went back to an earlier step, later evaluations are dropped. */
void evaluations_add(struct evaluations *evaluations, uint64_t step, double loss);
/* Replace the sampled text by a copy of these bytes. */
void evaluations_set_text(struct evaluations *evaluations, const void *bytes, size_t size);

#endif
