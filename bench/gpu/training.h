/* training.h - trains a model on one device, step by step on request. */
#ifndef BENCH_GPU_TRAINING_H
#define BENCH_GPU_TRAINING_H

#include "common/models/model.h"
#include "worker/kernels/kernels.h"

struct training_config {
    const struct device *device;
    struct job_model model;
    enum element element;
    int64_t samples; /* per step, in one micro-batch */
    bool one_by_one; /* launch kernels one by one, instead of whole stretches of a step at once */
};

/* What makes up a step. */
struct training_parts {
    int steps;
    double kernels_s; /* all kernels, each waited for, less the time of waiting itself */
    double wait_s;    /* launching and waiting for a minimal operation, once */
    uint64_t kernels;
};

/* What the instructions of one name in one section take in a step, each waited for. */
struct training_part {
    const char *name, *section;
    double seconds;
    uint64_t runs;
};
#define TRAINING_PARTS_MAX 64

struct training;

/* The device memory that the program needs, in bytes. Nothing is opened for this. */
uint64_t training_needs(const struct training_config *config);
/* Begin a new training. If the device cannot do it, the process ends with a message. */
struct training *training_open(const struct training_config *config);
void training_close(struct training *training);

/* Train `count` steps and store their losses; returns the seconds they took. */
double training_steps(struct training *training, int count, double *losses);
/* Train some more steps and take their mean apart. */
struct training_parts training_take_apart(struct training *training, int steps);
/* The same by name and section, what takes longest first; returns how many. */
int training_list_parts(const struct training *training, const struct training_parts *whole,
                        struct training_part parts[TRAINING_PARTS_MAX]);
/* Device memory in bytes: what program and libraries should take; and by how much the free memory
 * has shrunk since before the training was opened. */
uint64_t training_reserved(const struct training *training);
uint64_t training_taken(const struct training *training);

#endif
