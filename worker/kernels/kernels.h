/* kernels.h - the table of operations that a device offers.
 *
 * A device is a row in devices.c, or a module. For every operation it names one kernel per
 * direction and phase. A kernel works on the pieces that one rank holds, which are given as boxes.
 * It must not allocate memory, and touches nothing but what the call names.
 *
 * Tensors are row-major. Token numbers are int32. Statistics, losses and workspaces are f32, as are
 * masters, moments and finished gradients. The other operands and gradients of a call are either
 * all f32 or all bf16, except that gradients of weights may be f32 where the others are bf16. Sums
 * are made in f32 or better, and rounded to bf16 when they are written.
 *
 * Forward writes the output (a loss is added to it) and, phase by phase, the statistics of the
 * phase. Backward computes gradient[i] of every operand i that is wanted, from gradient[output].
 * Bit i of `accumulate` says whether gradient i is added to what is there or overwrites it;
 * gradients of weights are always added. The gradient of a loss is 1, and is not passed.
 *
 * The gradient of an input may share memory with the gradient of the output if both have the same
 * dims, and the gradient of a loss with the logits. No other memory overlaps.
 *
 * A phase gets the statistics of its own and of earlier phases. If the exchanged dim is whole here,
 * nothing is reduced between phases, and a device may do all the work in the last one. */
#ifndef WORKER_KERNELS_KERNELS_H
#define WORKER_KERNELS_KERNELS_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/graph/graph.h"
#include "worker/kernels/accelerator.h"

/* One rank's piece of a tensor. */
struct view {
    void *data; /* NULL: not wanted, or not there */
    struct box box;
    enum element element;
};

/* Number of elements of a piece. */
static inline size_t view_elements(const struct view *view)
{
    return (size_t)box_count(&view->box);
}

/* The arguments of a kernel; everything is lent for the call. */
struct kernel_call {
    const struct node *node;
    /* Inputs, weights, output, then the statistics of forward. All have boxes. In backward, data is
     * there for weights and for what the operation declares as saved. */
    struct view operand[VIEWS_MAX];
    /* Backward only: gradients of inputs, weights and output, then backward's own statistics. */
    struct view gradient[VIEWS_MAX];
    enum element element; /* of whatever is not always f32 */
    /* Bit i: add to gradient i. */
    unsigned accumulate;
    bool once;       /* this rank adds what must be added only once (a bias) */
    double targets;  /* number of targets in the whole step, over which the loss is averaged */
    void *workspace; /* the operation's workspace() bytes, or NULL */
    int phase;
};

typedef void kernel_fn(const struct kernel_call *call);

struct kernel {
    const char *name; /* of the operations that it computes */
    kernel_fn *run[DIRECTIONS][PHASES_MAX];
    /* -ENOTSUP with words if the kernel cannot handle such a node. (optional) */
    int (*check)(const struct node *node, struct error *err);
    /* Do everything that such a call does at its first execution only, and that may wait for the
     * device, as loading code does. Called in the thread's stream, once for each call of a program,
     * before any of its ranks waits for another. Nothing lies yet in the memory that the call
     * names, and any of it may be overwritten. (optional) */
    void (*prepare)(const struct kernel_call *call, enum direction direction);
};

/* Two consecutive forward operations, of which the second takes the output of the first, as one
 * launch. The results have the same bits as two launches. */
struct kernel_pair {
    const struct kernel *first, *second;
    /* Run the first operation, which has one phase, and the second's last phase. False: these two
     * calls do not fit, and nothing was done. */
    bool (*run)(const struct kernel_call *first, const struct kernel_call *second);
};

/* AdamW on one slice: all arrays have `count` elements. */
struct update_call {
    float *parameter, *gradient, *first, *second;
    size_t count;
    float rate, beta1, beta2, epsilon, decay;
    /* Of the whole step, in the memory of the device. Nothing is done unless both are finite. If
     * the norm of the gradient, which is the root of square_sum, exceeds clip, the gradient is
     * scaled down to it. */
    const float *loss, *square_sum;
    float clip;    /* 0: no clipping */
    uint64_t step; /* counted from 1, for the bias corrections */
};

/* The arguments of one of many sums of squares, and of one of many copies. */
struct square_call {
    const float *data;
    size_t count;
};
struct copy_call {
    struct view destination, source;
    struct box part;
};

#define DEVICE_TEXT_SIZE 96

/* One device of a kind, as the machine has it. */
struct device_info {
    char id[DEVICE_TEXT_SIZE]; /* chooses it: "GPU-6f0c..."; the same after a restart */
    char name[DEVICE_TEXT_SIZE];
    char place[32]; /* address on the bus: "0000:17:00.0" */
};

struct device {
    const char *name;
    /* For kinds of which a machine may have several: list those that this process sees, at most
     * `most`. Returns their number, or fails like probe. (optional) */
    int (*list)(struct device_info *out, int most, struct error *err);
    /* Restrict this process to the device with this id, or to several, separated by commas. To be
     * called before anything else is asked of the device, and before there are threads. probe then
     * says whether the first of them exists. (optional) */
    void (*choose)(const char *id);
    /* 0, or -ENODEV if this machine has no such device, with the reason in err. */
    int (*probe)(struct error *err);
    /* Name of the library by which such devices exchange data: a module with a row of struct
     * collectives. (optional) */
    const char *collectives;
    /* Set how many threads kernels called by this thread may use. (optional) */
    void (*threads)(int count);
    /* The memory that calls name, and the streams to which they are issued. NULL: host memory, and
     * a call returns when its work is done. */
    const struct accelerator *accelerator;
    const struct kernel *const *kernels; /* each handles f32 and bf16; ends with NULL */
    const struct kernel_pair *pairs;     /* ends with a NULL first. (optional) */

    /* Copy the box `part` from one piece to another, whose element may differ. */
    void (*copy)(const struct view *destination, const struct view *source, const struct box *part);
    void (*clear)(void *data, size_t bytes); /* set to 0 */
    /* destination += source, for as many elements as the source's box has; elements may differ. */
    void (*add)(const struct view *destination, const struct view *source);
    /* *sum += sum of squares, computed in double. */
    void (*square_sum)(const float *data, size_t count, float *sum);
    /* Of many arrays, and many copies none of which touches what another one writes: in as few
     * launches as possible, with the same bits as one by one. (optional; default: one by one) */
    void (*square_sum_all)(const struct square_call *calls, int count, float *sum);
    void (*copy_all)(const struct copy_call *calls, int count);
    void (*update)(const struct update_call *call);
    /* Update many slices that differ only in arrays, count and decay, in as few launches as
     * possible, with the same bits as one by one. (optional; default: one by one) */
    void (*update_all)(const struct update_call *calls, int count);
};

/* Plain C, readable and slow, to compare with; and the fast one for CPUs. */
extern const struct device device_plain, device_cpu;
/* Only if this program was built with CUDA. */
extern const struct device device_cuda;

extern const struct device *const devices[]; /* ends with NULL */
/* NULL: there is no such device in the table. */
const struct device *device_find(const char *name);
/* The device's kernel for an operation; NULL: it has none. */
const struct kernel *device_kernel(const struct device *device, const struct operation *operation);

#endif
