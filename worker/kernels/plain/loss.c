/* loss.c - cross entropy: the sum over rows of log(sum exp(x)) - x[target], divided by the number
 * of targets.
 *
 * If a row's target is not in this rank's piece of the vocabulary, its logit counts as 0 here, so
 * that the sum over all pieces is right. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

static void forward_largest(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS];
    float *largest = call->operand[LARGEST].data;
    for (int64_t row = 0; row < rows; row++) {
        largest[row] = -INFINITY;
        for (int64_t i = 0; i < vocab; i++)
            largest[row] = fmaxf(largest[row], (float)get(x, row * vocab + i));
    }
}

/* The target's column in this piece; -1: it is elsewhere, or ignored. */
static int64_t target_column(const struct kernel_call *call, int64_t row)
{
    const struct box *box = &call->operand[LOGITS].box;
    int32_t target = ((const int32_t *)call->operand[TARGETS].data)[row];
    int64_t first = box->low[box->dims - 1];
    return target >= first && target < first + call_width(box) ? target - first : -1;
}

static void forward_sums(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS];
    const float *largest = call->operand[LARGEST].data;
    float *exponentials = call->operand[EXPONENTIALS].data, *target = call->operand[TARGET].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < vocab; i++)
            sum += exp(get(x, row * vocab + i) - largest[row]);
        exponentials[row] = (float)sum;
        int64_t column = target_column(call, row);
        target[row] = column < 0 ? 0 : (float)(get(x, row * vocab + column) - largest[row]);
    }
}

static void forward_loss(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    const int32_t *targets = call->operand[TARGETS].data;
    const float *exponentials = call->operand[EXPONENTIALS].data;
    const float *target = call->operand[TARGET].data;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        if (targets[row] >= 0)
            sum += log((double)exponentials[row]) - (double)target[row];
    if (rows > 0)
        put(&call->operand[LOSS], 0, true, sum / call->targets);
}

static void backward(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS], *dx = &call->gradient[LOGITS];
    const float *largest = call->operand[LARGEST].data;
    const float *exponentials = call->operand[EXPONENTIALS].data;
    const int32_t *targets = call->operand[TARGETS].data;
    for (int64_t row = 0; dx->data && row < rows; row++) {
        int64_t column = target_column(call, row);
        for (int64_t i = 0; i < vocab; i++) {
            double p = exp(get(x, row * vocab + i) - largest[row]) / exponentials[row];
            put(dx, row * vocab + i, call_accumulates(call, LOGITS),
                targets[row] < 0 ? 0 : (p - (i == column)) / call->targets);
        }
    }
}

const struct kernel plain_loss = {
    "loss",
    {{forward_largest, forward_sums, forward_loss}, {backward}},
};
