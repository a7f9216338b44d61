/* random.c - Philox 4x32-10, and the distributions we need. */
#include "common/base/random.h"

#include <math.h>

/* The four words of 32 bits, in pairs. */
struct words {
    uint64_t first, second;
};

/* Without arrays: the address sanitizer has each read of them checked, and made half of the CPU
 * time of some tests of that. */
static struct words philox(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t a = (uint32_t)index, b = (uint32_t)(index >> 32);
    uint32_t c = (uint32_t)stream, d = (uint32_t)(stream >> 32);
    uint32_t low_key = (uint32_t)seed, high_key = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t first = 0xD2511F53ul * a, second = 0xCD9E8D57ul * c;
        a = (uint32_t)(second >> 32) ^ b ^ low_key;
        b = (uint32_t)second;
        c = (uint32_t)(first >> 32) ^ d ^ high_key;
        d = (uint32_t)first;
        low_key += 0x9E3779B9u;
        high_key += 0xBB67AE85u;
    }
    return (struct words){(uint64_t)b << 32 | a, (uint64_t)d << 32 | c};
}

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    return philox(seed, stream, index).first;
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
    struct words words = philox(seed, stream, index);
    double radius = to_unit(words.first), angle = to_unit(words.second);
    return sqrt(-2.0 * log(1.0 - radius)) * cos(2.0 * 3.14159265358979323846 * angle);
}

uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound)
{
    /* The high half of a 128-bit product; its bias is below bound / 2^64. */
    return (uint64_t)((unsigned __int128)random_bits(seed, stream, index) * bound >> 64);
}
