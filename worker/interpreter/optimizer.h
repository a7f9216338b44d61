/* optimizer.h - the numbers of AdamW (Loshchilov and Hutter, arXiv 1711.05101). */
#ifndef WORKER_INTERPRETER_OPTIMIZER_H
#define WORKER_INTERPRETER_OPTIMIZER_H

#include <stdint.h>

struct optimizer {
    double rate;            /* the largest learning rate */
    uint64_t warmup, steps; /* rises linearly, then falls as a cosine to a tenth at the end */
    double beta1, beta2, epsilon;
    double decay; /* of weights that decay, times the rate */
    double clip;  /* the largest norm of the whole gradient; 0: none */
};

/* The learning rate of a step, counted from 0. */
double optimizer_rate(const struct optimizer *optimizer, uint64_t step);

#endif
