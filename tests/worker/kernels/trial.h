/* trial.h - one operation on random data, whole or in pieces, forward and backward.
 *
 * Memory that a kernel shall overwrite holds NaN before, memory that it shall add to a known
 * start. Pieces draw their data from the same whole, and their results are put together as the
 * ranks of a job would. */
#ifndef TESTS_WORKER_KERNELS_TRIAL_H
#define TESTS_WORKER_KERNELS_TRIAL_H

#include "tests/support/kinds.h"
#include "worker/kernels/kernels.h"

#define PIECES_MAX 3
#define WANTED_ALL ~0u

struct trial_config {
    const struct device *device;
    const struct node *like; /* its operation and dims */
    struct sizes sizes;
    char split; /* 0: whole */
    bool accumulate;
    bool aligned; /* arrays lie at round addresses */
    bool rounded; /* what is drawn are numbers of bf16 */
    /* Of inputs, weights, output and the gradients of inputs; and of gradients of weights. */
    enum element element, weight_gradient;
    unsigned wanted; /* bit i: the gradient of operand i */
};

struct trial {
    struct trial_config config;
    struct node node;
    int pieces;
    struct kernel_call calls[PIECES_MAX];
};

struct trial *trial_create(const struct trial_config *config);
void trial_destroy(struct trial *trial);
/* May be repeated with other inputs. */
void trial_forward(struct trial *trial);
/* After forward, once. */
void trial_backward(struct trial *trial);
/* An operand (or statistic), or its gradient, as a whole: box_count(box) numbers to be freed. */
double *trial_gather(const struct trial *trial, bool gradient, int slot, struct box *box);
/* Is the letter a dim of one of its operands? */
bool trial_has_dim(const struct node *node, char dim);

struct sizes trial_sizes(int b, int s, int h, int n, int d, int f, int v);

#endif
