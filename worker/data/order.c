/* order.c - a Feistel network with cycle walking.
 *
 * A balanced Feistel network permutes the numbers of 2h bits, whatever its round function is (Luby
 * and Rackoff 1988). If the result is not below count, it is encrypted again until it is. That walk
 * stays on one cycle of the larger permutation, so what remains is a permutation of 0 .. count-1
 * (Black and Rogaway 2002). The domain is less than four times count, so fewer than four walks are
 * needed on average. */
#include "worker/data/order.h"

#include "common/base/hash.h"
#include "common/base/random.h"

#include <assert.h>

#define ROUNDS 8

/* Half the number of bits of the smallest domain with an even number of bits that holds `count`
 * numbers. */
static unsigned half_bits(uint64_t count)
{
    unsigned half = 1;
    while (UINT64_C(1) << (2 * half) < count)
        half++;
    return half;
}

static uint64_t permute(uint64_t seed, uint64_t stream, unsigned half, uint64_t number)
{
    uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = number >> half, right = number & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (random_bits(seed, stream, round << 32 | right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position)
{
    assert(position < count && count <= UINT64_C(1) << 62);
    if (count == 1)
        return 0;
    /* A stream of its own, distinct from those of weights and dropout. */
    uint64_t stream = hash_number(hash_text(HASH_START, "data order"), epoch);
    unsigned half = half_bits(count);
    do
        position = permute(seed, stream, half, position);
    while (position >= count);
    return position;
}
