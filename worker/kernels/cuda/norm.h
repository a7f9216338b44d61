/* norm.h - the rows of a layer or root-mean-square normalisation, as kernels take them. */
#ifndef WORKER_KERNELS_CUDA_NORM_H
#define WORKER_KERNELS_CUDA_NORM_H

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

enum { NORM_X, NORM_W, NORM_B };

struct dots {
    float w, u; /* of dy w with ones, and with u */
};

/* The rows of a call. Methods that take a row are called by a whole warp, and all its lanes get the
 * result. Rows that are not centred (rmsnorm) have neither b nor a mean, and so no sums or dots_w:
 * these are NULL. */
template <typename E, bool centred> struct norm_rows {
    int64_t count, hidden;
    float width, epsilon; /* width: of the whole row; hidden: of the part here */
    const E *x, *w, *b, *dy;
    E *y, *dx;
    bool add; /* to dx */
    float *sums, *squares, *dots_w, *dots_u;

    bool whole(void) const
    {
        return hidden == (int64_t)width;
    }
    __device__ float mean_of(float sum) const
    {
        return centred ? sum / width : 0;
    }
    __device__ float scale_of(float squares) const
    {
        return 1 / sqrtf(squares / width + epsilon);
    }
    __device__ float mean(int64_t row) const
    {
        return centred ? mean_of(sums[row]) : 0;
    }
    /* u = (x - mean) * scale */
    __device__ float scale(int64_t row) const
    {
        return scale_of(squares[row]);
    }

    __device__ float sum_row(int64_t row) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP)
            sum += wide(x[row * hidden + i]);
        return warp_sum(sum);
    }
    __device__ float square_row(int64_t row, float mean) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            float deviation = wide(x[row * hidden + i]) - mean;
            sum += deviation * deviation;
        }
        return warp_sum(sum);
    }
    __device__ void normalise_row(int64_t row, float mean, float scale) const
    {
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float bias = centred ? wide(b[i]) : 0;
            set_at(&y[at], (wide(x[at]) - mean) * scale * wide(w[i]) + bias);
        }
    }
    __device__ struct dots dot_row(int64_t row) const
    {
        float mean = this->mean(row), sum = 0, sum_x = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float du = wide(dy[at]) * wide(w[i]);
            sum += du;
            sum_x += du * (wide(x[at]) - mean);
        }
        return {centred ? warp_sum(sum) : 0, warp_sum(sum_x) * scale(row)};
    }
    /* dx = (dy w - (dot_w + u dot_u) / width) / deviation */
    __device__ void slope_row(int64_t row, struct dots dots) const
    {
        float mean = this->mean(row), scale = this->scale(row);
        float constant = dots.w / width, slope = dots.u / width * scale;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float rest = (wide(x[at]) - mean) * slope + constant;
            put_at(&dx[at], add, (wide(dy[at]) * wide(w[i]) - rest) * scale);
        }
    }
};

template <typename E, bool centred>
struct norm_rows<E, centred> norm_rows_of(const struct kernel_call *call) {
    const struct box *box = &call->operand[NORM_X].box;
    int y = operation_output(call->node->operation);
    int first = y + 1, last = centred ? first + 1 : first; /* statistics */
    return {call_rows(box),
            call_width(box),
            (float)call_whole_width(call, NORM_X),
            call->node->epsilon,
            (const E *)call->operand[NORM_X].data,
            (const E *)call->operand[NORM_W].data,
            centred ? (const E *)call->operand[NORM_B].data : NULL,
            (const E *)call->gradient[y].data,
            (E *)call->operand[y].data,
            (E *)call->gradient[NORM_X].data,
            call_accumulates(call, NORM_X),
            centred ? (float *)call->operand[first].data : NULL,
            (float *)call->operand[last].data,
            centred ? (float *)call->gradient[first].data : NULL,
            (float *)call->gradient[last].data};
}

/* All phases of a direction for rows that are whole, in one launch; false: they are too wide for it,
 * or do not lie as it needs them. Forward, the rows are first made by `sum`, unless that is NULL:
 * residual.h says when that is possible. */
bool norm_forward_whole(const struct kernel_call *sum, const struct kernel_call *call,
                        bool centred);
bool norm_backward_whole(const struct kernel_call *call, bool centred);

#endif
