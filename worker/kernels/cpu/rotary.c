/* rotary.c - rotary positions. The cosines and sines of a position are computed once for all of its
 * heads and samples. Formulas: plain/plain.c. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#define ANGLES 128 /* of a position, that are held at a time */

struct turning {
    enum element element;
    int64_t batch, places, width;
    int64_t count; /* numbers of all heads at a position */
    int64_t first; /* position of the first place in the whole sequence */
    double sign;
    const struct rotation *rotation;
    const void *from;
    void *to;
    bool add;
};

/* For some of the pairs of a head: how far each turns from one position to the next, and the cosine
 * and sine of its angle at one position. */
struct angles {
    int64_t first, count;
    double speed[ANGLES];
    float cosine[ANGLES], sine[ANGLES];
};

static void rotary_begin(const struct turning *turning, struct angles *angles)
{
    for (int64_t i = 0; i < angles->count; i++) {
        double speed = rotation_speed(turning->rotation, angles->first + i, turning->width);
        angles->speed[i] = turning->sign * speed;
    }
}

static void rotary_go_to(const struct turning *turning, int64_t place, struct angles *angles)
{
    for (int64_t i = 0; i < angles->count; i++) {
        double sine, cosine;
        sincos((double)(turning->first + place) * angles->speed[i], &sine, &cosine);
        angles->sine[i] = (float)sine;
        angles->cosine[i] = (float)cosine;
    }
}

/* Rotate these pairs of one head. */
INLINED void turn_head(const struct turning *turning, const struct angles *angles, int64_t head,
                       enum element e, bool add)
{
    int64_t half = turning->width / 2;
    const void *x = from_number(turning->from, e, head + angles->first);
    const void *z = from_number(turning->from, e, head + half + angles->first);
    void *to_x = from_number(turning->to, e, head + angles->first);
    void *to_z = from_number(turning->to, e, head + half + angles->first);
#pragma omp simd
    for (int64_t i = 0; i < angles->count; i++) {
        float u = load(x, e, i), w = load(z, e, i), c = angles->cosine[i], s = angles->sine[i];
        store(to_x, e, i, (add ? load(to_x, e, i) : 0) + u * c - w * s);
        store(to_z, e, i, (add ? load(to_z, e, i) : 0) + u * s + w * c);
    }
}

/* The last number of an odd width is not rotated. */
INLINED void pass_last(const struct turning *turning, int64_t head, enum element e)
{
    int64_t at = head + turning->width - 1;
    float before = turning->add ? load(turning->to, e, at) : 0;
    if (turning->width % 2)
        store(turning->to, e, at, before + load(turning->from, e, at));
}

/* All heads of one position and sample. */
INLINED void turn_row(const struct turning *turning, const struct angles *angles, int64_t row,
                      enum element e)
{
    for (int64_t head = row; head < row + turning->count; head += turning->width) {
        if (turning->add)
            turn_head(turning, angles, head, e, true);
        else
            turn_head(turning, angles, head, e, false);
        if (angles->first == 0)
            pass_last(turning, head, e);
    }
}

INLINED void turn_places(const struct turning *turning, int64_t first, int64_t end, enum element e)
{
    int64_t half = turning->width / 2;
    for (int64_t part = 0; part == 0 || part < half; part += ANGLES) {
        struct angles angles = {part, half - part < ANGLES ? half - part : ANGLES};
        rotary_begin(turning, &angles);
        for (int64_t place = first; place < end; place++) {
            rotary_go_to(turning, place, &angles);
            for (int64_t b = 0; b < turning->batch; b++)
                turn_row(turning, &angles, (b * turning->places + place) * turning->count, e);
        }
    }
}

EITHER_ELEMENT(turn_places, turning)

/* Dims are b, s, those of heads, d. */
static void rotary_turn(const struct kernel_call *call, const struct view *from,
                        const struct view *to, double sign, bool add)
{
    const struct box *box = &from->box;
    struct turning turning = {.element = call->element,
                              .batch = box_length(box, 0),
                              .places = box_length(box, 1),
                              .width = box_length(box, box->dims - 1),
                              .count = 1,
                              .first = box->low[1],
                              .sign = sign,
                              .rotation = &call->node->rotation,
                              .from = from->data,
                              .to = to->data,
                              .add = add};
    for (int i = 2; i < box->dims; i++)
        turning.count *= box_length(box, i);
    parallel(turning.places, 1, turn_places_range, &turning);
}

static void rotary_forward(const struct kernel_call *call)
{
    rotary_turn(call, &call->operand[0], &call->operand[1], 1, false);
}

static void rotary_backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        rotary_turn(call, &call->gradient[1], &call->gradient[0], -1, call_accumulates(call, 0));
}

const struct kernel cpu_rotary = {"rotary", {{rotary_forward}, {rotary_backward}}};
