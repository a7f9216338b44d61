/* ledger.c - see ledger.h. */
#include "tests/simulation/ledger.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#define SAMPLES 64 /* of a step */

uint64_t ledger_share(uint64_t step, uint32_t rank, uint32_t ranks)
{
    uint64_t share = 0;
    for (uint64_t i = (uint64_t)SAMPLES * rank / ranks; i < (uint64_t)SAMPLES * (rank + 1) / ranks;
         i++)
        share += hash_number(HASH_START, step * SAMPLES + i);
    return share;
}

uint64_t ledger_add(uint64_t ledger, uint64_t step, uint64_t shares)
{
    return hash_number(hash_number(hash_number(HASH_START, ledger), step), shares);
}

/* The same for all jobs: after each number of steps, as far as anybody has asked. */
uint64_t ledger_right(uint64_t steps)
{
    static uint64_t *right;
    static size_t count, capacity;
    while (count <= steps) {
        uint64_t next =
            count == 0 ? LEDGER_START
                       : ledger_add(right[count - 1], count - 1, ledger_share(count - 1, 0, 1));
        right = grow(right, count, &capacity, sizeof *right);
        right[count++] = next;
    }
    return right[steps];
}
