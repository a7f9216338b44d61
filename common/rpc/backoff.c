/* backoff.c - exponential backoff with equal jitter. */
#include "common/rpc/backoff.h"

uint32_t backoff_ms(unsigned attempt, double uniform)
{
    uint32_t wait = BACKOFF_MS_MIN;
    while (attempt-- > 0 && wait < BACKOFF_MS_MAX)
        wait *= 2;
    if (wait > BACKOFF_MS_MAX)
        wait = BACKOFF_MS_MAX;
    return wait - (uint32_t)(uniform * 0.5 * wait);
}
