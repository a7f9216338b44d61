/* norm.h - the rows of a layer or root-mean-square normalisation, as kernels take them: a warp
 * each; made by a residual addition in the same launch; or whole in the registers of a team. */
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

/* ---- a residual addition and the norm of its result, in one launch ---- */

/* Compute a row of x = a + z, then call norm(row). Each lane reads only elements of x that it wrote
 * itself, so no synchronisation is needed. */
template <typename E, typename Norm>
struct added {
    Norm norm;
    const E *a, *z;
    E *x;
    int64_t hidden;
    __device__ void operator()(int64_t row) const
    {
        const E *a_here = a, *z_here = z;
        E *x_here = x;
        each_ahead(
            row * hidden + lane_of(), (row + 1) * hidden, WARP,
            [=](int64_t i) { return wide(a_here[i]) + wide(z_here[i]); },
            [=](int64_t i, float sum) { set_at(&x_here[i], sum); });
        norm(row);
    }
};

/* Whether the memory of two views overlaps, other than by being the same. */
inline bool residual_overlaps(const struct view *a, const struct view *b)
{
    const char *a_begin = (const char *)a->data, *b_begin = (const char *)b->data;
    size_t a_bytes = view_elements(a) * element_size(a->element);
    size_t b_bytes = view_elements(b) * element_size(b->element);
    bool same = a_begin == b_begin && a_bytes == b_bytes; /* a row is read before it is written */
    return a_begin && b_begin && !same && a_begin < b_begin + b_bytes &&
           b_begin < a_begin + a_bytes;
}

/* Whether the input of the norm is exactly the result of the sum, and one launch may do both. After
 * the sum its operands may be dead, and the results of the norm may have been placed in their
 * memory. That rules out one launch, in which some rows are still to be added when others are
 * normalised, unless they share the memory exactly, row by row. */
inline bool residual_is(const struct kernel_call *sum, const struct kernel_call *norm)
{
    const struct view *made = &sum->operand[2], *taken = &norm->operand[0];
    bool is = made->data == taken->data && box_count(&made->box) == box_count(&taken->box);
    for (int i = operation_output(norm->node->operation); i < VIEWS_MAX; i++)
        is = is && !residual_overlaps(&sum->operand[0], &norm->operand[i]) &&
             !residual_overlaps(&sum->operand[1], &norm->operand[i]);
    return is;
}

/* Launch the sum and norm(row) for each row. */
template <typename E, typename Norm>
void residual_launch(const char *what, const struct kernel_call *sum, const Norm &norm)
{
    const struct added<E, Norm> each = {
        norm, (const E *)sum->operand[0].data, (const E *)sum->operand[1].data,
            (E *)sum->operand[2].data, norm.rows.hidden
    };
    launch_each_row(what, norm.rows.count, each);
}

/* ---- whole rows in registers: a team of warps takes one row at a time, and each thread has some
 * packs of it ---- */

#define CHUNKS_MAX 4 /* packs of a row that a thread has: more would not fit in its registers */
#define TEAM_COLUMNS_MAX (WARPS * WARP * PACK * CHUNKS_MAX)

/* TEAM warps with CHUNKS packs for each thread: those at columns first, first + SPAN, ... */
template <int TEAM, int CHUNKS> struct team {
    static constexpr int THREADS_OF = TEAM * WARP, TEAMS = WARPS / TEAM, SPAN = THREADS_OF * PACK;
    int number; /* in the block */
    int64_t first, columns;

    __device__ team(int64_t columns)
        : number((int)threadIdx.x / THREADS_OF), first(threadIdx.x % THREADS_OF * PACK),
          columns(columns)
    {
    }
    __device__ int64_t at(int chunk) const
    {
        return first + chunk * SPAN;
    }
    __device__ bool has(int chunk) const
    {
        return at(chunk) < columns;
    }
    __device__ bool is_first(void) const
    {
        return first == 0;
    }

    /* A row's chunks from memory; zeros where it has ended, and for a row that is none. */
    template <typename E>
    __device__ void load(struct pack<E, PACK> (&row)[CHUNKS], const E *from, bool is) const
    {
        for (int c = 0; c < CHUNKS; c++)
            row[c] = is && has(c) ? pack_at<PACK>(&from[at(c)]) : pack<E, PACK>();
    }

    /* Sums over the team's threads, in a fixed order. Teams of several warps call it together, for
     * each of their rows equally often; `turn` is how often they have, so that one barrier is
     * enough. */
    template <int N> __device__ numbers<N> sum(struct numbers<N> mine, int turn) const
    {
        __shared__ struct numbers<N> sums[2][WARPS];
        for (int i = 0; i < N; i++)
            mine.of[i] = warp_sum(mine.of[i]);
        if (TEAM == 1)
            return mine;
        if (lane_of() == 0)
            sums[turn % 2][threadIdx.x / WARP] = mine;
        __syncthreads();
        mine = sums[turn % 2][number * TEAM];
        for (int warp = 1; warp < TEAM; warp++)
            for (int i = 0; i < N; i++)
                mine.of[i] += sums[turn % 2][number * TEAM + warp].of[i];
        return mine;
    }
};

/* Blocks for this many rows. */
template <int TEAM> unsigned team_blocks(int64_t rows)
{
    return blocks_of(rows, WARPS / TEAM);
}

/* Call launch<TEAM, CHUNKS>() for the smallest team whose threads have room for a row: in ALONE
 * chunks each if it is one warp, otherwise in SHARED. For the widest rows there is none, and they
 * have CHUNKS_MAX. */
template <int ALONE, int SHARED, typename Launch> void team_choose(int64_t columns, Launch launch)
{
    static_assert(ALONE >= 3 && ALONE <= CHUNKS_MAX && SHARED <= CHUNKS_MAX);
    const int64_t chunks = (columns + WARP * PACK - 1) / (WARP * PACK); /* of a warp's threads */
    if (chunks <= 1)
        launch.template operator()<1, 1>();
    else if (chunks <= 2)
        launch.template operator()<1, 2>();
    else if (chunks <= 3)
        launch.template operator()<1, 3>();
    else if (chunks <= ALONE)
        launch.template operator()<1, ALONE>();
    else if (chunks <= 2 * SHARED)
        launch.template operator()<2, SHARED>();
    else if (chunks <= 4 * SHARED)
        launch.template operator()<4, SHARED>();
    else if (chunks <= 8 * SHARED)
        launch.template operator()<8, SHARED>();
    else
        launch.template operator()<8, CHUNKS_MAX>();
}

/* All phases of a direction for rows that are whole, in one launch; false: they are too wide for
 * it, or do not lie as it needs them. Forward, the rows are first made by `sum`, unless that is
 * NULL: residual_is() says when that is possible. */
bool norm_forward_whole(const struct kernel_call *sum, const struct kernel_call *call,
                        bool centred);
bool norm_backward_whole(const struct kernel_call *call, bool centred);

#endif
