/* rotation.h - the frequencies of rotary position embeddings (RoPE: Su et al., arXiv 2104.09864),
 * and how they are scaled for sequences longer than those a model was first trained on.
 *
 * Plain numbers and inline functions, so that CUDA kernels can compile this header too. */
#ifndef COMMON_GRAPH_ROTATION_H
#define COMMON_GRAPH_ROTATION_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ROTATION_FUNCTION static inline __host__ __device__
#else
#define ROTATION_FUNCTION static inline
#endif

/* Unscaled, pair i of a head rotates by base^(-2i / width) radians per position. Scaling follows
 * LLaMA 3.1 (Grattafiori et al., arXiv 2407.21783): pairs that complete fewer than `low` rotations
 * within `places` positions are slowed by `factor`, those that complete more than `high` are left
 * alone, and in between the speed is interpolated linearly. With low and high infinite, every
 * pair is slowed: linear scaling, Chen et al., arXiv 2306.15595. */
struct rotation {
    float base;
    float factor;            /* 1: no scaling */
    float low, high, places; /* bounds in rotations; the original sequence length */
};

/* The rotation of pair i of a head of this width, in radians per position. */
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
