/* optimizer.h - hyperparameters and learning rate schedule of AdamW (Loshchilov and Hutter, arXiv
 * 1711.05101). */
#ifndef WORKER_INTERPRETER_OPTIMIZER_H
#define WORKER_INTERPRETER_OPTIMIZER_H

#include <stdint.h>

struct optimizer {
    double rate;            /* the peak learning rate */
    uint64_t warmup, steps; /* linear rise, then a cosine down to a tenth of rate at the end */
    double beta1, beta2, epsilon;
    double decay; /* decoupled weight decay, multiplied by the rate; for tensors that decay */
    double clip;  /* largest L2 norm of the whole gradient; 0: no clipping */
};

/* The learning rate of step `step`, counted from 0. */
double optimizer_rate(const struct optimizer *optimizer, uint64_t step);

#endif
