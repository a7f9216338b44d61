/* rotary.c - rotary positions: (x, z) -> (x cos a - z sin a, x sin a + z cos a) for element i of
 * the first and of the second half of a head, where a = place * speed by the node's rotation
 * (common/graph/rotation.h). The last element of an odd width is unchanged. Backward rotates
 * back. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

/* The vectors of all heads at one position: `count` elements from `first` on. */
struct run {
    int64_t first, count;
};

/* By what to rotate at one position; a negative place rotates back. */
struct angles {
    double place;
    const struct rotation *rotation;
};

static void turn_place(const struct view *x, const struct view *y, struct run run, int64_t width,
                       struct angles angles, bool add)
{
    int64_t half = width / 2;
    for (int64_t head = run.first; head < run.first + run.count; head += width) {
        for (int64_t i = 0; i < half; i++) {
            double angle = angles.place * rotation_speed(angles.rotation, i, width);
            double first = get(x, head + i), second = get(x, head + half + i);
            put(y, head + i, add, first * cos(angle) - second * sin(angle));
            put(y, head + half + i, add, first * sin(angle) + second * cos(angle));
        }
        if (width % 2)
            put(y, head + width - 1, add, get(x, head + width - 1));
    }
}

/* Dims are b, s, those of heads, d. */
static void turn(const struct view *from, const struct view *to, bool add, double sign,
                 const struct rotation *rotation)
{
    const struct box *box = &from->box;
    int64_t places = box_length(box, 1), width = box_length(box, box->dims - 1);
    int64_t count = 1;
    for (int i = 2; i < box->dims; i++)
        count *= box_length(box, i);
    for (int64_t b = 0; b < box_length(box, 0); b++)
        for (int64_t s = 0; s < places; s++) {
            int64_t at = (b * places + s) * count;
            turn_place(from, to, (struct run){at, count}, width,
                       (struct angles){sign * (double)(box->low[1] + s), rotation}, add);
        }
}

static void forward(const struct kernel_call *call)
{
    turn(&call->operand[0], &call->operand[1], false, 1, &call->node->rotation);
}

static void backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        turn(&call->gradient[1], &call->gradient[0], call_accumulates(call, 0), -1,
             &call->node->rotation);
}

const struct kernel plain_rotary = {"rotary", {{forward}, {backward}}};
