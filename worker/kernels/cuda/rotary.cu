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

template <typename E> struct rotary_turn {
    const E *from;
    E *to;
    int64_t samples, places, heads, width, first; /* first: of the places, in the whole sequence */
    double sign;
    struct rotation rotation;
    bool add;
};

template <typename E>
__device__ void turn_pair(const struct rotary_turn<E> *rotary_turn, int64_t at, float sine,
                          float cosine)
{
    int64_t half = rotary_turn->width / 2;
    float first = wide(rotary_turn->from[at]), second = wide(rotary_turn->from[at + half]);
    put_at(&rotary_turn->to[at], rotary_turn->add, first * cosine - second * sine);
    put_at(&rotary_turn->to[at + half], rotary_turn->add, first * sine + second * cosine);
}

template <typename E> __global__ void turn_all(struct rotary_turn<E> rotary_turn)
{
    int64_t half = rotary_turn.width / 2, each = half + rotary_turn.width % 2;
    int64_t count = rotary_turn.samples * rotary_turn.places * each;
    for (int64_t i = element_first(); i < count; i += element_step()) {
        int64_t pair = i % each, place = i / each,
                first = place * rotary_turn.heads * rotary_turn.width;
        double angle = rotary_turn.sign * (double)(rotary_turn.first + place % rotary_turn.places) *
                       rotation_speed(&rotary_turn.rotation, pair, rotary_turn.width);
        float sine = (float)sin(angle), cosine = (float)cos(angle);
        for (int64_t head = 0; head < rotary_turn.heads; head++) {
            int64_t at = first + head * rotary_turn.width;
            if (pair < half)
                turn_pair(&rotary_turn, at + pair, sine, cosine);
            else
                put_at(&rotary_turn.to[at + rotary_turn.width - 1], rotary_turn.add,
                       wide(rotary_turn.from[at + rotary_turn.width - 1]));
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
    struct rotary_turn<E> rotary_turn = {
        (const E *)from->data, (E *)to->data, box_length(box, 0),
            box_length(box, 1), heads, width, box->low[1], sign, rotation, add
    };
    launch_elements("rotary", turn_all<E>,
                    rotary_turn.samples * rotary_turn.places * (width / 2 + width % 2),
                    rotary_turn);
}

template <typename E> void rotary_forward(const struct kernel_call *call)
{
    run<E>(&call->operand[0], &call->operand[1], false, 1, call->node->rotation);
}

template <typename E> void rotary_backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        run<E>(&call->gradient[1], &call->gradient[0], call_accumulates(call, 0), -1,
               call->node->rotation);
}

} // namespace

const struct kernel cuda_rotary = {"rotary", {{EITHER(rotary_forward)}, {EITHER(rotary_backward)}}};
