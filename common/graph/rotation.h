/* rotation.h - how fast the pairs of a head turn by rotary positions (Su et al., arXiv 2104.09864),
 * and how they are slowed for longer texts than those that a model first learned from.
 *
 * Plain numbers, which devices compute as well. */
#ifndef COMMON_GRAPH_ROTATION_H
#define COMMON_GRAPH_ROTATION_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ROTATION_FUNCTION static inline __host__ __device__
#else
#define ROTATION_FUNCTION static inline
#endif

/* Pair i turns by base^(-2i / width) from one place to the next. What turns fewer than `low` times
 * within `places` is slowed by `factor`, what turns more than `high` times is not, and between them
 * by parts of both: LLaMA 3.1 (Grattafiori et al., arXiv 2407.21783). low and high without an end
 * slow all: Chen et al., arXiv 2306.15595. */
struct rotation {
    float base;
    float factor; /* 1: none is slowed */
    float low, high, places;
};

/* Of pair i of a head so wide, in radians from one place to the next. */
ROTATION_FUNCTION double rotation_speed(const struct rotation *rotation, int64_t i, int64_t width)
{
    double speed = pow((double)rotation->base, -2 * (double)i / (double)width);
    double slow = speed / (double)rotation->factor;
    double turns = (double)rotation->places * speed / 6.283185307179586;
    double low = (double)rotation->low, high = (double)rotation->high;
    if (rotation->factor == 1 || turns > high)
        return speed;
    if (turns < low)
        return slow;
    double share = (turns - low) / (high - low);
    return (1 - share) * slow + share * speed;
}

#endif
