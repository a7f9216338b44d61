/* norm_backward.cu - the backward of normalisation for whole rows, in one launch and with one pass
 * over memory. A team of warps takes one row at a time: each thread keeps its columns of the row in
 * registers, and beside them what its columns add to the gradients of weight and bias. Those are
 * then summed over the teams of a block, and over the blocks as in columns.h. Which rows a block
 * has depends only on how many there are, so every run gives the same bits. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/norm.h"

namespace
{

#define BLOCKS 256   /* at most; no device runs many more of them at once */
#define CHUNKS_MAX 4 /* packs of a row that a thread has, so that registers suffice */

/* Of one row: the sums of dy w, and of dy w u. */
struct dots {
    float w, u;
};

/* A team's sums, which all its threads get. Blocks of several warps a team call it for each row,
 * all threads together; `turn` is odd for every second row, so that one barrier is enough. */
template <int TEAM> __device__ struct dots team_sum(struct dots mine, int turn)
{
    __shared__ struct dots sums[2][WARPS];
    struct dots sum = {warp_sum(mine.w), warp_sum(mine.u)};
    int warp = (int)(threadIdx.x / WARP), first = warp / TEAM * TEAM;
    if (TEAM == 1)
        return sum;
    if (lane_of() == 0)
        sums[turn][warp] = sum;
    __syncthreads();
    sum = sums[turn][first];
    for (int i = 1; i < TEAM; i++) {
        sum.w += sums[turn][first + i].w;
        sum.u += sums[turn][first + i].u;
    }
    return sum;
}

/* What a thread has of each row: columns first, first + SPAN, ..., PACK of each. */
template <int TEAM, int CHUNKS> struct columns {
    static constexpr int SPAN = TEAM * WARP * PACK;
    int64_t first, hidden;

    __device__ int64_t at(int chunk) const
    {
        return first + chunk * SPAN;
    }
    __device__ bool has(int chunk) const
    {
        return at(chunk) < hidden;
    }
};

/* Store the sum over the block's teams of what each has for a column. */
template <int TEAM, int CHUNKS>
__device__ void leave_sum(const struct columns<TEAM, CHUNKS> &columns,
                          const struct numbers<PACK> (&mine)[CHUNKS], float *out)
{
    __shared__ float sums[TEAM * WARP * PACK * CHUNKS];
    int team = (int)threadIdx.x / (TEAM * WARP);
    for (int turn = 0; turn < WARPS / TEAM; turn++) {
        for (int c = 0; c < CHUNKS; c++)
            for (int k = 0; k < PACK && turn == team && columns.has(c); k++)
                sums[columns.at(c) + k] = mine[c].of[k] + (turn > 0 ? sums[columns.at(c) + k] : 0);
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < columns.hidden; i += THREADS)
        out[i] = sums[i];
    __syncthreads();
}

template <typename E, bool centred, int TEAM, int CHUNKS>
__global__ void __launch_bounds__(THREADS, CHUNKS < CHUNKS_MAX ? 2 : 1)
    backward(struct norm_rows<E, centred> rows, float *parts)
{
    constexpr int TEAMS = WARPS / TEAM;
    const int team = (int)threadIdx.x / (TEAM * WARP);
    const struct columns<TEAM, CHUNKS> columns = {
        (int64_t)(threadIdx.x % (TEAM * WARP)) * PACK, rows.hidden
    };
    struct numbers<PACK> dw[CHUNKS] = {}, db[CHUNKS] = {
    };
    int turn = 0;
    for (int64_t first = (int64_t)blockIdx.x * TEAMS; first < rows.count;
         first += (int64_t)gridDim.x * TEAMS, turn ^= 1) {
        const int64_t row = first + team;
        const bool is = row < rows.count;
        const float mean = is ? rows.mean(row) : 0, scale = is ? rows.scale(row) : 0;
        struct pack<E, PACK> x[CHUNKS] = {}, dy[CHUNKS] = {}, w[CHUNKS] = {
        };
        struct dots dots = {0, 0};
        for (int c = 0; c < CHUNKS; c++)
            if (is && columns.has(c)) {
                x[c] = pack_at<PACK>(&rows.x[row * rows.hidden + columns.at(c)]);
                dy[c] = pack_at<PACK>(&rows.dy[row * rows.hidden + columns.at(c)]);
                w[c] = pack_at<PACK>(&rows.w[columns.at(c)]);
            }
        for (int c = 0; c < CHUNKS; c++)
            for (int k = 0; k < PACK && is && columns.has(c); k++) {
                float slope = wide(dy[c].of[k]), u = (wide(x[c].of[k]) - mean) * scale;
                dots.w += slope * wide(w[c].of[k]);
                dots.u += slope * wide(w[c].of[k]) * u;
                dw[c].of[k] += slope * u;
                db[c].of[k] += slope;
            }
        dots = team_sum<TEAM>(dots, turn);
        const float constant = centred ? dots.w / rows.width : 0, rise = dots.u / rows.width;
        for (int c = 0; c < CHUNKS; c++) {
            if (!is || !rows.dx || !columns.has(c))
                continue;
            E *to = &rows.dx[row * rows.hidden + columns.at(c)];
            struct numbers<PACK> dx = {
            };
            if (rows.add)
                dx = numbers_at<PACK>(to);
            for (int k = 0; k < PACK; k++) {
                float u = (wide(x[c].of[k]) - mean) * scale;
                dx.of[k] += (wide(dy[c].of[k]) * wide(w[c].of[k]) - u * rise - constant) * scale;
            }
            numbers_set<PACK>(to, dx);
        }
    }
    leave_sum<TEAM, CHUNKS>(columns, dw, parts + blockIdx.x * rows.hidden);
    if (centred)
        leave_sum<TEAM, CHUNKS>(columns, db, parts + (gridDim.x + blockIdx.x) * rows.hidden);
}

template <typename E, bool centred, int TEAM, int CHUNKS>
void launch(const struct kernel_call *call, const struct norm_rows<E, centred> &rows)
{
    const char *what = centred ? "norm backward" : "rmsnorm backward";
    const struct view *dw = &call->gradient[NORM_W], *db = &call->gradient[NORM_B];
    float *parts = lane_here()->scratch;
    int64_t room = SCRATCH_BYTES / (int64_t)sizeof(float) / rows.hidden / (centred ? 2 : 1);
    int64_t blocks = (rows.count * TEAM + WARPS - 1) / WARPS;
    blocks = blocks < BLOCKS ? blocks : BLOCKS;
    blocks = blocks < room ? blocks : room;
    launch_blocks(what, backward<E, centred, TEAM, CHUNKS>, dim3((unsigned)blocks), rows, parts);
    if (dw->data)
        columns_add_up(what, parts, blocks, rows.hidden, dw->element, dw->data);
    if (centred && db->data)
        columns_add_up(what, parts + blocks * rows.hidden, blocks, rows.hidden, db->element,
                       db->data);
}

/* The smallest team whose threads have room for a row. */
template <typename E, bool centred> bool backward_of(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    const int64_t warp = WARP * PACK;
    if (rows.count == 0 || !packs(rows.hidden, {rows.x, rows.w, rows.dy, rows.dx}) ||
        rows.hidden > WARPS * CHUNKS_MAX * warp)
        return false;
    if (rows.hidden <= warp)
        launch<E, centred, 1, 1>(call, rows);
    else if (rows.hidden <= 2 * warp)
        launch<E, centred, 1, 2>(call, rows);
    else if (rows.hidden <= 3 * warp)
        launch<E, centred, 1, 3>(call, rows);
    else if (rows.hidden <= 4 * warp)
        launch<E, centred, 1, 4>(call, rows);
    else if (rows.hidden <= 8 * warp)
        launch<E, centred, 2, 4>(call, rows);
    else if (rows.hidden <= 16 * warp)
        launch<E, centred, 4, 4>(call, rows);
    else
        launch<E, centred, 8, 4>(call, rows);
    return true;
}

} // namespace

bool norm_backward_whole(const struct kernel_call *call, bool centred)
{
    bool narrow = call->element == ELEMENT_BF16;
    if (centred)
        return narrow ? backward_of<bf16, true>(call) : backward_of<float, true>(call);
    return narrow ? backward_of<bf16, false>(call) : backward_of<float, false>(call);
}
