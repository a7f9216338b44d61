/* training.h - a model on one device, trained when asked. */
#ifndef BENCH_GPU_TRAINING_H
#define BENCH_GPU_TRAINING_H

#include "common/models/model.h"
#include "worker/kernels/kernels.h"

struct training_config {
    const struct device *device;
    struct model_config model;
    int64_t samples; /* of a step, in one micro-batch */
    bool one_by_one; /* kernels are launched so, and no stretch of a step as one */
};

/* What a step is made of. */
struct training_parts {
    double kernels_s; /* each waited for, less what waiting takes */
    double wait_s;    /* for nothing, once */
    uint64_t kernels;
};

struct training;

/* Bytes of the device that the program of such a training holds; nothing is opened. */
uint64_t training_needs(const struct training_config *config);
/* Fresh; ends the process with a sentence where the device cannot. */
struct training *training_open(const struct training_config *config);
void training_close(struct training *training);

/* Seconds of so many steps; their losses. */
double training_steps(struct training *training, int count, double *losses);
/* Of the mean of some steps more. */
struct training_parts training_take_apart(struct training *training, int steps);
/* Bytes of the device: what the program and libraries are to hold; what is gone since before it was
 * opened. */
uint64_t training_reserved(const struct training *training);
uint64_t training_taken(const struct training *training);

#endif
