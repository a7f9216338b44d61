/* clock.h - the clocks of this machine, and how long it is until a time.
 *
 * Durations and deadlines are measured by the monotonic clock, which counts from an arbitrary
 * moment before this process started. The simulation of the tests has clocks of its own in place of
 * these. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

/* The monotonic clock, in three units. */
double clock_s(void);
uint64_t clock_ms(void);
uint64_t clock_ns(void);
/* Wall-clock time of this machine, in milliseconds since 1970. */
uint64_t clock_unix_ms(void);

/* Milliseconds from now to then; 0 when then has passed. */
static inline uint32_t clock_left_ms(uint64_t then_ms, uint64_t now_ms)
{
    if (then_ms <= now_ms)
        return 0;
    return then_ms - now_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)(then_ms - now_ms);
}

#endif
