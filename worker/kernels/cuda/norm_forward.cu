/* norm_forward.cu - normalisation of whole rows, with one pass over memory, and of rows that are
 * first made by a residual addition. */
#include "worker/kernels/cuda/norm.h"
#include "worker/kernels/cuda/team.h"

namespace
{

/* Of the sum that x is, and where it is stored; NULL: x is there. Either term may share memory with
 * y or x, row by row. */
template <typename E> struct terms {
    const E *a, *z;
    E *sum;
};

template <typename E, int CHUNKS>
__device__ void add(struct pack<E, PACK> (&x)[CHUNKS], const struct pack<E, PACK> (&z)[CHUNKS])
{
    for (int c = 0; c < CHUNKS; c++)
        for (int k = 0; k < PACK; k++)
            set_at(&x[c].of[k], wide(x[c].of[k]) + wide(z[c].of[k]));
}

template <typename E, bool centred, int TEAM, int CHUNKS>
__global__ void forward(struct norm_rows<E, centred> rows, struct terms<E> terms)
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
            add(x, z);
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
bool forward_of(const struct kernel_call *sum, const struct kernel_call *call)
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
        launch_blocks(centred ? "norm" : "rmsnorm", forward<E, centred, TEAM, CHUNKS>,
                      dim3(team_blocks<TEAM>(rows.count)), rows, terms);
    });
    return true;
}

} // namespace

bool norm_forward_whole(const struct kernel_call *sum, const struct kernel_call *call, bool centred)
{
    bool narrow = call->element == ELEMENT_BF16;
    if (centred)
        return narrow ? forward_of<bf16, true>(sum, call) : forward_of<float, true>(sum, call);
    return narrow ? forward_of<bf16, false>(sum, call) : forward_of<float, false>(sum, call);
}
