/* loss.c - cross entropy, row by row. Where all of the vocabulary is here, the last phase does
 * all three while a row is in the cache, and those before it nothing. Rows are summed in their
 * order. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/parallel.h"

#include <math.h>

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

struct loss {
    int64_t rows, vocab, first; /* first: column of the whole vocabulary */
    const float *x;
    const int32_t *targets;
    float *largest, *exponentials, *target, *dx;
    double count;
    bool add, whole;
};

static struct loss loss_of(const struct kernel_call *call)
{
    const struct box *box = &call->operand[LOGITS].box;
    return (struct loss){
        .rows = call_rows(box),
        .vocab = box_length(box, 2),
        .first = box->low[2],
        .x = call->operand[LOGITS].data,
        .targets = call->operand[TARGETS].data,
        .largest = call->operand[LARGEST].data,
        .exponentials = call->operand[EXPONENTIALS].data,
        .target = call->operand[TARGET].data,
        .dx = call->gradient[LOGITS].data,
        .count = call->targets,
        .add = call_accumulates(call, LOGITS),
        .whole = box_length(box, 2) == sizes_get(&call->sizes, 'v'),
    };
}

static inline __attribute__((always_inline)) void row_largest(const struct loss *loss, int64_t row)
{
    const float *x = loss->x + row * loss->vocab;
    float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < loss->vocab; i++)
        largest = x[i] > largest ? x[i] : largest;
    loss->largest[row] = largest;
}

/* The target's column in this piece; -1: it is elsewhere, or ignored. */
static inline int64_t target_column(const struct loss *loss, int64_t row)
{
    int64_t column = loss->targets[row] - loss->first;
    return loss->targets[row] >= 0 && column >= 0 && column < loss->vocab ? column : -1;
}

static inline __attribute__((always_inline)) void row_sums(const struct loss *loss, int64_t row)
{
    const float *x = loss->x + row * loss->vocab;
    float largest = loss->largest[row], sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < loss->vocab; i++)
        sum += exponential(x[i] - largest);
    loss->exponentials[row] = sum;
    int64_t column = target_column(loss, row);
    loss->target[row] = column < 0 ? 0 : x[column] - largest;
}

VECTORISED static void largest_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_largest(context, row);
}

VECTORISED static void sums_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_sums(context, row);
}

VECTORISED static void both_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++) {
        row_largest(context, row);
        row_sums(context, row);
    }
}

static void forward_largest(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (!loss.whole)
        parallel(loss.rows, 1, largest_range, &loss);
}

static void forward_sums(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (!loss.whole)
        parallel(loss.rows, 1, sums_range, &loss);
}

static void forward_loss(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (loss.whole)
        parallel(loss.rows, 1, both_range, &loss);
    double sum = 0;
    for (int64_t row = 0; row < loss.rows; row++)
        if (loss.targets[row] >= 0)
            sum += log((double)loss.exponentials[row]) - loss.target[row];
    if (loss.rows > 0)
        put(&call->operand[LOSS], 0, true, sum / loss.count);
}

/* dx = (p - [column is the target]) / count. May write over the logits. */
VECTORISED static void backward_range(const void *context, int64_t first, int64_t end)
{
    const struct loss *loss = context;
    for (int64_t row = first; row < end; row++) {
        const float *x = loss->x + row * loss->vocab;
        float *dx = loss->dx + row * loss->vocab;
        bool ignored = loss->targets[row] < 0;
        float largest = loss->largest[row];
        float share = ignored ? 0 : (float)(1 / (loss->exponentials[row] * loss->count));
        if (loss->add) {
#pragma omp simd
            for (int64_t i = 0; i < loss->vocab; i++)
                dx[i] += exponential(x[i] - largest) * share;
        } else {
#pragma omp simd
            for (int64_t i = 0; i < loss->vocab; i++)
                dx[i] = exponential(x[i] - largest) * share;
        }
        int64_t column = target_column(loss, row);
        if (column >= 0)
            dx[column] -= (float)(1 / loss->count);
    }
}

static void backward(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (loss.dx)
        parallel(loss.rows, 1, backward_range, &loss);
}

const struct kernel cpu_loss = {
    "loss",
    {{forward_largest, forward_sums, forward_loss}, {backward}},
};
