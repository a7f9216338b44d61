/* kernels.h - the table of operations that a device offers.
 *
 * A device is a row in devices.c. It names, for every operation, one kernel per direction and
 * phase. A kernel works on the pieces that one rank holds: boxes say which. It may not allocate,
 * and touches nothing but what the call names. Tensors are row-major. Token numbers are int32;
 * statistics, a loss and workspaces are f32, as are masters, moments and finished gradients. The
 * other operands and gradients of a call are all f32 or all bf16, but for gradients of weights,
 * which may be f32 where the others are bf16. Sums are taken in f32 or more, and
 * rounded to bf16 where they are written.
 *
 * Forward: write the output (the loss: add to it) and, phase by phase, the statistics of the
 * phase. Backward: gradient[i] of every operand i that is wanted, from gradient[output]. A bit
 * in `accumulate` says that gradient i is added to what is there, else it is overwritten.
 * Gradients of weights are always added. The gradient of a loss is 1, and not passed.
 *
 * An input's gradient may lie where the output's does when both have the same dims, and that of
 * a loss where the logits do. No other memory may overlap.
 *
 * A phase is given the statistics of its own and of earlier phases. Where the exchanged dim is
 * whole here nothing is reduced between phases, and a device may leave all to the last one. */
#ifndef WORKER_KERNELS_KERNELS_H
#define WORKER_KERNELS_KERNELS_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/graph/graph.h"
#include "worker/kernels/accelerator.h"

struct view {
    void *data; /* NULL: not wanted, or not there */
    struct box box;
    enum element element;
};

static inline size_t view_elements(const struct view *view)
{
    return (size_t)box_count(&view->box);
}

struct kernel_call {
    const struct node *node;
    struct sizes sizes; /* of the whole dims (b: the micro-batch's) */
    /* Inputs, weights, output, then the statistics of forward. In backward data is there for
     * what the operation declares as saved, and the weights; boxes for all. */
    struct view operand[VIEWS_MAX];
    /* Backward only: of inputs, weights, output; then backward's own statistics. */
    struct view gradient[VIEWS_MAX];
    enum element element; /* of what is not f32 in any case */
    unsigned accumulate;
    bool once;       /* this rank adds what may be added only once */
    double targets;  /* of the whole step: the loss is a mean over them */
    void *workspace; /* as many bytes as the operation's workspace() says, or NULL */
    int phase;
};

typedef void kernel_fn(const struct kernel_call *call);

struct kernel {
    const char *name; /* of the operations it computes */
    kernel_fn *run[DIRECTIONS][PHASES_MAX];
    /* -ENOTSUP in words where it is not made for such a node; sizes are of the whole dims.
     * (optional) */
    int (*check)(const struct node *node, const struct sizes *sizes, struct error *err);
    /* Whatever such a call makes at its first time that waits for the device, in the calling
     * thread's lane: once for each call of a program, before any of its ranks waits for another.
     * What the call names is not touched. (optional) */
    void (*prepare)(const struct kernel_call *call, enum direction direction);
};

/* Two operations forward, of which the second takes what the first has made, at once: with the bits
 * that they have one after the other. */
struct kernel_pair {
    const struct kernel *first, *second;
    /* The call of the first, which has one phase, and that of the second's last one. False: not
     * these two, and nothing was done. */
    bool (*run)(const struct kernel_call *first, const struct kernel_call *second);
};

/* AdamW of one slice: all arrays have `count` elements. */
struct update_call {
    float *parameter, *gradient, *first, *second;
    size_t count;
    float rate, beta1, beta2, epsilon, decay;
    /* Of the whole step, in the device's memory: unless both are finite, nothing is done. A
     * gradient whose norm, the root of the sum of squares, is above clip is scaled down to it. */
    const float *loss, *square_sum;
    float clip;    /* 0: none */
    uint64_t step; /* from 1: the bias corrections */
};

#define DEVICE_TEXT_SIZE 96

/* One of the machine's devices of a kind. */
struct device_info {
    char id[DEVICE_TEXT_SIZE]; /* by which it is chosen: "GPU-6f0c..."; the same after a restart */
    char name[DEVICE_TEXT_SIZE];
    char place[32]; /* on the bus: "0000:17:00.0" */
};

struct device {
    const char *name;
    /* Where a machine may have several: those that this process sees, at most `most`. Returns how
     * many, or fails as probe. (optional) */
    int (*list)(struct device_info *out, int most, struct error *err);
    /* The one with this id is all that this process sees, or those of several with commas between
     * them; before anything else is asked of the device, and before there are threads. probe says
     * whether the first is there. (optional) */
    void (*choose)(const char *id);
    /* 0, or -ENODEV with the reason in err: the machine has none. */
    int (*probe)(struct error *err);
    /* The library by which such devices exchange data among themselves: a module, by this name,
     * with a row of the family of collectives. (optional) */
    const char *collectives;
    /* Threads that kernels called from this thread may use. (optional) */
    void (*threads)(int count);
    /* The memory that calls name, and the lanes that they are issued to; NULL: the host's memory,
     * and a call returns when its work is done. */
    const struct accelerator *accelerator;
    const struct kernel *const *kernels; /* each for f32 and for bf16; ends with NULL */
    const struct kernel_pair *pairs;     /* ends with NULL. (optional) */

    /* Copy the box `part` from one piece to another, which may be of another element. */
    void (*copy)(const struct view *destination, const struct view *source, const struct box *part);
    void (*clear)(void *data, size_t bytes); /* to 0 */
    /* destination += source, of any elements: as many as there are in the source's box. */
    void (*add)(const struct view *destination, const struct view *source);
    /* *sum += the sum of squares, in double inside. */
    void (*square_sum)(const float *data, size_t count, float *sum);
    void (*update)(const struct update_call *call);
    /* The same of many slices, which differ in their arrays, count and decay only, in as few
     * launches as it takes; with the same bits. (optional: one after the other) */
    void (*update_all)(const struct update_call *calls, int count);
};

/* The plain C yardstick, readable and slow; and what is used. */
extern const struct device device_plain, device_cpu;
/* Where this program was built with CUDA. */
extern const struct device device_cuda;

extern const struct device *const devices[]; /* ends with NULL */
const struct device *device_find(const char *name);
const struct kernel *device_kernel(const struct device *device, const struct operation *operation);

#endif
