/* evaluations.h - the losses of one job on held-out data, and the newest text sampled from it. */
#ifndef COORDINATOR_TELEMETRY_EVALUATIONS_H
#define COORDINATOR_TELEMETRY_EVALUATIONS_H

#include <stddef.h>
#include <stdint.h>

#define EVALUATIONS_MAX 10000      /* the newest are kept */
#define EVALUATIONS_TEXT_MAX 65536 /* bytes of a sample; the rest is cut */

struct evaluation {
    uint64_t step;
    double loss;
};

/* Zeroed to begin with. */
struct evaluations {
    struct evaluation *items; /* oldest first */
    size_t count, capacity;
    char *text; /* its bytes as they came; NULL before there is one */
    size_t text_size;
};
void evaluations_finish(struct evaluations *evaluations);

/* A step that was evaluated before, in an epoch that went back, is replaced with all behind it. */
void evaluations_add(struct evaluations *evaluations, uint64_t step, double loss);
void evaluations_set_text(struct evaluations *evaluations, const void *bytes, size_t size);

#endif
