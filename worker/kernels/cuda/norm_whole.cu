/* norm_whole.cu - normalisation of whole rows, each direction in one launch and with one pass over
 * memory, and of rows that are first made by a residual addition. A file of its own, as it has many
 * instances: they are compiled beside the others.
 *
 * Backward, each thread keeps what its columns add to the gradients of weight and bias in
 * registers, too. Those are then summed over the teams of a block, and over the blocks as in
 * columns.h. Which rows a block has depends only on how many there are, so every run gives the same
 * bits. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/norm.h"

namespace
{

/* Of the sum that x is, and where it is stored; NULL: x is there. Either term may share memory with
 * y or x, row by row. */
template <typename E> struct terms {
    const E *a, *z;
    E *sum;
};

template <typename E, int CHUNKS>
__device__ void add_packs(struct pack<E, PACK> (&x)[CHUNKS],
                          const struct pack<E, PACK> (&z)[CHUNKS])
{
    for (int c = 0; c < CHUNKS; c++)
        for (int k = 0; k < PACK; k++)
            set_at(&x[c].of[k], wide(x[c].of[k]) + wide(z[c].of[k]));
}

template <typename E, bool centred, int TEAM, int CHUNKS>
__global__ void whole_forward(struct norm_rows<E, centred> rows, struct terms<E> terms)
{
    const struct team<TEAM, CHUNKS> team(rows.hidden);
    int turn = 0;
    for (int64_t first = (int64_t)blockIdx.x * team.TEAMS; first < rows.count;
         first += (int64_t)gridDim.x * team.TEAMS) {
        const int64_t row = first + team.number, at = row * rows.hidden;
        const bool is = row < rows.count;
        struct pack<E, PACK> x[CHUNKS], z[CHUNKS];
        team.load(x, (terms.a ? terms.a : rows.x) + at, is);
        if (terms.a) {
            team.load(z, terms.z + at, is);
            add_packs(x, z);
            for (int c = 0; c < CHUNKS; c++)
                if (is && team.has(c))
                    pack_set<PACK>(&terms.sum[at + team.at(c)], x[c]);
        }
        struct numbers<1> sum = {}, squares = {
        };
        for (int c = 0; c < CHUNKS && centred; c++)
            for (int k = 0; k < PACK; k++)
                sum.of[0] += wide(x[c].of[k]);
        if (centred)
            sum = team.sum(sum, turn++);
        const float mean = rows.mean_of(sum.of[0]);
        for (int c = 0; c < CHUNKS; c++)
            for (int k = 0; k < PACK && team.has(c); k++)
                squares.of[0] += (wide(x[c].of[k]) - mean) * (wide(x[c].of[k]) - mean);
        squares = team.sum(squares, turn++);
        const float scale = rows.scale_of(squares.of[0]);
        if (is && team.is_first()) {
            if (centred)
                rows.sums[row] = sum.of[0];
            rows.squares[row] = squares.of[0];
        }
        for (int c = 0; c < CHUNKS; c++) {
            if (!is || !team.has(c))
                continue;
            struct numbers<PACK> w = numbers_at<PACK>(&rows.w[team.at(c)]), y = {
            };
            if (centred)
                y = numbers_at<PACK>(&rows.b[team.at(c)]);
            for (int k = 0; k < PACK; k++)
                y.of[k] += (wide(x[c].of[k]) - mean) * scale * w.of[k];
            numbers_set<PACK>(&rows.y[at + team.at(c)], y);
        }
    }
}

template <typename E, bool centred>
bool whole_forward_of(const struct kernel_call *sum, const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    struct terms<E> terms = {
    };
    if (sum)
        terms = {(const E *)sum->operand[0].data, (const E *)sum->operand[1].data,
                 (E *)sum->operand[2].data};
    if (rows.hidden > TEAM_COLUMNS_MAX ||
        !packs(rows.hidden, {rows.x, rows.w, rows.b, rows.y, terms.a, terms.z}))
        return false;
    team_choose<CHUNKS_MAX, CHUNKS_MAX>(rows.hidden, [&]<int TEAM, int CHUNKS>() {
        launch_blocks(centred ? "norm" : "rmsnorm", whole_forward<E, centred, TEAM, CHUNKS>,
                      dim3(team_blocks<TEAM>(rows.count)), rows, terms);
    });
    return true;
}

#define BLOCKS 264 /* at most: two for each multiprocessor of an H100 */

/* Store the sum over the block's teams of what each has for a column. */
template <int TEAM, int CHUNKS>
__device__ void leave_sum(const struct team<TEAM, CHUNKS> &team,
                          const struct numbers<PACK> (&mine)[CHUNKS], float *out)
{
    __shared__ float sums[TEAM * WARP * PACK * CHUNKS];
    for (int turn = 0; turn < team.TEAMS; turn++) {
        for (int c = 0; c < CHUNKS; c++)
            for (int k = 0; k < PACK && turn == team.number && team.has(c); k++)
                sums[team.at(c) + k] = mine[c].of[k] + (turn > 0 ? sums[team.at(c) + k] : 0);
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < team.columns; i += THREADS)
        out[i] = sums[i];
    __syncthreads();
}

template <typename E, bool centred, int TEAM, int CHUNKS>
__global__ void __launch_bounds__(THREADS, CHUNKS < CHUNKS_MAX ? 2 : 1)
    whole_backward(struct norm_rows<E, centred> rows, float *parts)
{
    const struct team<TEAM, CHUNKS> team(rows.hidden);
    numbers<PACK> dw[CHUNKS] = {}, db[CHUNKS] = {};
    int turn = 0;
    for (int64_t first = (int64_t)blockIdx.x * team.TEAMS; first < rows.count;
         first += (int64_t)gridDim.x * team.TEAMS) {
        const int64_t row = first + team.number, at = row * rows.hidden;
        const bool is = row < rows.count;
        const float mean = is ? rows.mean(row) : 0, scale = is ? rows.scale(row) : 0;
        struct pack<E, PACK> x[CHUNKS], dy[CHUNKS], w[CHUNKS];
        team.load(x, rows.x + at, is);
        team.load(dy, rows.dy + at, is);
        team.load(w, rows.w, is);
        numbers<2> dots = {}; /* of dy w with ones, and with u */
        for (int c = 0; c < CHUNKS; c++)
            for (int k = 0; k < PACK; k++) {
                float slope = wide(dy[c].of[k]), u = (wide(x[c].of[k]) - mean) * scale;
                dots.of[0] += slope * wide(w[c].of[k]);
                dots.of[1] += slope * wide(w[c].of[k]) * u;
                dw[c].of[k] += slope * u;
                db[c].of[k] += slope;
            }
        dots = team.sum(dots, turn++);
        const float constant = centred ? dots.of[0] / rows.width : 0;
        const float rise = dots.of[1] / rows.width;
        for (int c = 0; c < CHUNKS; c++) {
            if (!is || !rows.dx || !team.has(c))
                continue;
            E *to = &rows.dx[at + team.at(c)];
            numbers<PACK> dx = {};
            if (rows.add)
                dx = numbers_at<PACK>(to);
            for (int k = 0; k < PACK; k++) {
                float u = (wide(x[c].of[k]) - mean) * scale;
                dx.of[k] += (wide(dy[c].of[k]) * wide(w[c].of[k]) - u * rise - constant) * scale;
            }
            numbers_set<PACK>(to, dx);
        }
    }
    leave_sum(team, dw, parts + blockIdx.x * rows.hidden);
    if (centred)
        leave_sum(team, db, parts + (gridDim.x + blockIdx.x) * rows.hidden);
}

template <typename E, bool centred, int TEAM, int CHUNKS>
void whole_backward_launch(const struct kernel_call *call, const struct norm_rows<E, centred> &rows)
{
    const char *what = centred ? "norm backward" : "rmsnorm backward";
    const struct view *dw = &call->gradient[NORM_W], *db = &call->gradient[NORM_B];
    float *parts = stream_here()->scratch;
    int64_t room = SCRATCH_BYTES / (int64_t)sizeof(float) / rows.hidden / (centred ? 2 : 1);
    int64_t blocks = team_blocks<TEAM>(rows.count);
    blocks = blocks < BLOCKS ? blocks : BLOCKS;
    blocks = blocks < room ? blocks : room;
    launch_blocks(what, whole_backward<E, centred, TEAM, CHUNKS>, dim3((unsigned)blocks), rows,
                  parts);
    if (dw->data)
        columns_add_up(what, parts, blocks, rows.hidden, dw->element, dw->data);
    if (centred && db->data)
        columns_add_up(what, parts + blocks * rows.hidden, blocks, rows.hidden, db->element,
                       db->data);
}

template <typename E, bool centred> bool whole_backward_of(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    if (rows.count == 0 || rows.hidden > TEAM_COLUMNS_MAX ||
        !packs(rows.hidden, {rows.x, rows.w, rows.dy, rows.dx}))
        return false;
    team_choose<3, 2>(rows.hidden, [&]<int TEAM, int CHUNKS>() {
        whole_backward_launch<E, centred, TEAM, CHUNKS>(call, rows);
    });
    return true;
}

} // namespace

bool norm_forward_whole(const struct kernel_call *sum, const struct kernel_call *call, bool centred)
{
    bool narrow = call->element == ELEMENT_BF16;
    if (centred)
        return narrow ? whole_forward_of<bf16, true>(sum, call)
                      : whole_forward_of<float, true>(sum, call);
    return narrow ? whole_forward_of<bf16, false>(sum, call)
                  : whole_forward_of<float, false>(sum, call);
}

bool norm_backward_whole(const struct kernel_call *call, bool centred)
{
    bool narrow = call->element == ELEMENT_BF16;
    if (centred)
        return narrow ? whole_backward_of<bf16, true>(call) : whole_backward_of<float, true>(call);
    return narrow ? whole_backward_of<bf16, false>(call) : whole_backward_of<float, false>(call);
}
