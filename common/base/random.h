/* random.h - counter-based random numbers: any value of a sequence, in any order.
 *
 * A value depends on (seed, stream, index) and nothing else. So initial weights and samples are the
 * same under every plan, wherever and in whatever order they are drawn. */
#ifndef COMMON_BASE_RANDOM_H
#define COMMON_BASE_RANDOM_H

#include <stdint.h>

/* 64 random bits: Philox 4x32, 10 rounds (Salmon et al., SC11). */
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);
/* Uniform in [0, 1), with 53 bits. */
double random_uniform(uint64_t seed, uint64_t stream, uint64_t index);
/* Normal, mean 0, deviation 1 (Box and Muller). */
double random_normal(uint64_t seed, uint64_t stream, uint64_t index);
/* Uniform integer in [0, bound); bound > 0. */
uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

#endif
