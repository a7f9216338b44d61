/* random.h - counter-based random numbers: the value at an index, in any order.
 *
 * What is drawn depends on (seed, stream, index) and on nothing else, so that weights and
 * samples are the same under every plan, wherever and in whatever order they are made. */
#ifndef COMMON_BASE_RANDOM_H
#define COMMON_BASE_RANDOM_H

#include <stdint.h>

/* 64 random bits: Philox 4x32, 10 rounds (Salmon et al., SC11). */
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);
/* In [0, 1), 53 bits. */
double random_uniform(uint64_t seed, uint64_t stream, uint64_t index);
/* Mean 0, deviation 1 (Box and Muller). */
double random_normal(uint64_t seed, uint64_t stream, uint64_t index);
/* In [0, bound); bound > 0. */
uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

#endif
