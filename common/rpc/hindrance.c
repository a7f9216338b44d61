/* hindrance.c - what is held, and for how long. */
#include "common/rpc/hindrance.h"

#include "common/base/clock.h"

uint32_t rpc_hindrance_ms(const struct rpc_hindrance *hindrance, uint64_t now_ms)
{
    uint32_t left_ms = clock_left_ms(hindrance->until_ms, now_ms);
    return left_ms > 0 && hindrance->delay_ms > 0 ? hindrance->delay_ms : left_ms;
}
