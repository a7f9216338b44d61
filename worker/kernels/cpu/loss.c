/* loss.c - cross entropy, row by row. If the whole vocabulary is here, the last phase does the work
 * of all three while a row is in the cache, and earlier phases do nothing. Rows are summed in
 * order. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#include <math.h>

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

struct loss {
    enum element element;       /* element of x and dx */
    int64_t rows, vocab, first; /* first: the piece's first column in the whole vocabulary */
    const void *x;
    const int32_t *targets;
    float *largest, *exponentials, *target;
    void *dx;
    double count;
    bool add, whole;
};

static struct loss loss_of(const struct kernel_call *call)
{
    const struct box *box = &call->operand[LOGITS].box;
    return (struct loss){
        .element = call->element,
        .rows = call_rows(box),
        .vocab = call_width(box),
        .first = box->low[box->dims - 1],
        .x = call->operand[LOGITS].data,
        .targets = call->operand[TARGETS].data,
        .largest = call->operand[LARGEST].data,
        .exponentials = call->operand[EXPONENTIALS].data,
        .target = call->operand[TARGET].data,
        .dx = call->gradient[LOGITS].data,
        .count = call->targets,
        .add = call_accumulates(call, LOGITS),
        .whole = call_width(box) == call_whole_width(call, LOGITS),
    };
}

INLINED void row_largest(const struct loss *loss, int64_t row, enum element e)
{
    const void *x = from_number(loss->x, e, row * loss->vocab);
    float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < loss->vocab; i++)
        largest = load(x, e, i) > largest ? load(x, e, i) : largest;
    loss->largest[row] = largest;
}

/* The target's column in this piece; -1: it is elsewhere, or ignored. */
static inline int64_t loss_target_column(const struct loss *loss, int64_t row)
{
    int64_t column = loss->targets[row] - loss->first;
    return loss->targets[row] >= 0 && column >= 0 && column < loss->vocab ? column : -1;
}

INLINED void row_sums(const struct loss *loss, int64_t row, enum element e)
{
    const void *x = from_number(loss->x, e, row * loss->vocab);
    float largest = loss->largest[row], sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < loss->vocab; i++)
        sum += exponential(load(x, e, i) - largest);
    loss->exponentials[row] = sum;
    int64_t column = loss_target_column(loss, row);
    loss->target[row] = column < 0 ? 0 : load(x, e, column) - largest;
}

INLINED void largest_rows(const struct loss *loss, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_largest(loss, row, e);
}

INLINED void sum_rows(const struct loss *loss, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_sums(loss, row, e);
}

INLINED void both_rows(const struct loss *loss, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        row_largest(loss, row, e);
        row_sums(loss, row, e);
    }
}

EITHER_ELEMENT(largest_rows, loss)
EITHER_ELEMENT(sum_rows, loss)
EITHER_ELEMENT(both_rows, loss)

static void loss_forward_largest(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (!loss.whole)
        parallel(loss.rows, 1, largest_rows_range, &loss);
}

static void loss_forward_sums(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (!loss.whole)
        parallel(loss.rows, 1, sum_rows_range, &loss);
}

static void loss_forward(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (loss.whole)
        parallel(loss.rows, 1, both_rows_range, &loss);
    double sum = 0;
    for (int64_t row = 0; row < loss.rows; row++)
        if (loss.targets[row] >= 0)
            sum += log((double)loss.exponentials[row]) - loss.target[row];
    if (loss.rows > 0)
        put(&call->operand[LOSS], 0, true, sum / loss.count);
}

/* dx = (p - [column is the target]) / count. dx may share memory with the logits. */
INLINED void backward_row(const struct loss *loss, int64_t row, enum element e)
{
    const void *x = from_number(loss->x, e, row * loss->vocab);
    void *dx = from_number(loss->dx, e, row * loss->vocab);
    int64_t column = loss_target_column(loss, row);
    float largest = loss->largest[row], at_target = 0;
    float share = loss->targets[row] < 0 ? 0 : (float)(1 / (loss->exponentials[row] * loss->count));
    if (column >= 0)
        at_target = (loss->add ? load(dx, e, column) : 0) - (float)(1 / loss->count) +
                    exponential(load(x, e, column) - largest) * share;
    if (loss->add) {
#pragma omp simd
        for (int64_t i = 0; i < loss->vocab; i++)
            store(dx, e, i, load(dx, e, i) + exponential(load(x, e, i) - largest) * share);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < loss->vocab; i++)
            store(dx, e, i, exponential(load(x, e, i) - largest) * share);
    }
    if (column >= 0)
        store(dx, e, column, at_target);
}

INLINED void backward_rows(const struct loss *loss, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        backward_row(loss, row, e);
}

EITHER_ELEMENT(backward_rows, loss)

static void loss_backward(const struct kernel_call *call)
{
    struct loss loss = loss_of(call);
    if (loss.dx)
        parallel(loss.rows, 1, backward_rows_range, &loss);
}

const struct kernel cpu_loss = {
    "loss",
    {{loss_forward_largest, loss_forward_sums, loss_forward}, {loss_backward}},
};
