/* clock.c - reads CLOCK_MONOTONIC. */
#include "common/rpc/clock.h"

#include <time.h>

uint64_t rpc_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t rpc_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint32_t rpc_clock_left_ms(uint64_t then_ms, uint64_t now_ms)
{
    if (then_ms <= now_ms)
        return 0;
    return then_ms - now_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)(then_ms - now_ms);
}
