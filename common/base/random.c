/* random.c - Philox 4x32-10, and the distributions we need. */
#include "common/base/random.h"

#include <math.h>

static void philox(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t first = 0xD2511F53ull * c[0], second = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = {(uint32_t)(second >> 32) ^ c[1] ^ key[0], (uint32_t)second,
                            (uint32_t)(first >> 32) ^ c[3] ^ key[1], (uint32_t)first};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t out[4];
    philox(seed, stream, index, out);
    return (uint64_t)out[1] << 32 | out[0];
}

static double to_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return to_unit(random_bits(seed, stream, index));
}

double random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t out[4];
    philox(seed, stream, index, out);
    double radius = to_unit((uint64_t)out[1] << 32 | out[0]);
    double angle = to_unit((uint64_t)out[3] << 32 | out[2]);
    return sqrt(-2.0 * log(1.0 - radius)) * cos(2.0 * 3.14159265358979323846 * angle);
}

uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound)
{
    /* The high half of a 128-bit product; its bias is below bound / 2^64. */
    return (uint64_t)((unsigned __int128)random_bits(seed, stream, index) * bound >> 64);
}
