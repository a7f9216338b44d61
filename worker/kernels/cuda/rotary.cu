/* rotary.cu - rotary positions: (x, z) -> (x cos a - z sin a, x sin a + z cos a) for element i of
 * the first half of a head and of the second, a = place * speed, the node's rotation
 * (common/graph/rotation.h). The last element of an odd width stays. Backward rotates by -a.
 *
 * A thread rotates the same pair of all heads at one place, so that sine and cosine are computed
 * only once for all of them; in double precision, because places can be large. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

namespace
{

template <typename E> struct turn {
    const E *from;
    E *to;
    int64_t samples, places, heads, width, first; /* first: of the places, in the whole sequence */
    double sign;
    struct rotation rotation;
    bool add;
};

template <typename E>
__device__ void turn_pair(const struct turn<E> *turn, int64_t at, float sine, float cosine)
{
    int64_t half = turn->width / 2;
    float first = wide(turn->from[at]), second = wide(turn->from[at + half]);
    put_at(&turn->to[at], turn->add, first * cosine - second * sine);
    put_at(&turn->to[at + half], turn->add, first * sine + second * cosine);
}

template <typename E> __global__ void turn_all(struct turn<E> turn)
{
    int64_t half = turn.width / 2, each = half + turn.width % 2;
    int64_t count = turn.samples * turn.places * each;
    for (int64_t i = element_first(); i < count; i += element_step()) {
        int64_t pair = i % each, place = i / each, first = place * turn.heads * turn.width;
        double angle = turn.sign * (double)(turn.first + place % turn.places) *
                       rotation_speed(&turn.rotation, pair, turn.width);
        float sine = (float)sin(angle), cosine = (float)cos(angle);
        for (int64_t head = 0; head < turn.heads; head++) {
            int64_t at = first + head * turn.width;
            if (pair < half)
                turn_pair(&turn, at + pair, sine, cosine);
            else
                put_at(&turn.to[at + turn.width - 1], turn.add,
                       wide(turn.from[at + turn.width - 1]));
        }
    }
}

/* The dims are batch, sequence, one or two of heads, width. */
template <typename E>
void run(const struct view *from, const struct view *to, bool add, double sign,
         const struct rotation &rotation)
{
    const struct box *box = &from->box;
    int64_t heads = 1, width = box_length(box, box->dims - 1);
    for (int i = 2; i < box->dims - 1; i++)
        heads *= box_length(box, i);
    struct turn<E> turn = {
        (const E *)from->data, (E *)to->data, box_length(box, 0),
            box_length(box, 1), heads, width, box->low[1], sign, rotation, add
    };
    launch_elements("rotary", turn_all<E>, turn.samples * turn.places * (width / 2 + width % 2),
                    turn);
}

template <typename E> void forward(const struct kernel_call *call)
{
    run<E>(&call->operand[0], &call->operand[1], false, 1, call->node->rotation);
}

template <typename E> void backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        run<E>(&call->gradient[1], &call->gradient[0], call_accumulates(call, 0), -1,
               call->node->rotation);
}

} // namespace

const struct kernel cuda_rotary = {"rotary", {{EITHER(forward)}, {EITHER(backward)}}};
