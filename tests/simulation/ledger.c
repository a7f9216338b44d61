/* ledger.c - see ledger.h. */
#include "tests/simulation/ledger.h"

#include "common/base/hash.h"

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

uint64_t ledger_right(uint64_t steps)
{
    uint64_t ledger = LEDGER_START;
    for (uint64_t step = 0; step < steps; step++)
        ledger = ledger_add(ledger, step, ledger_share(step, 0, 1));
    return ledger;
}
