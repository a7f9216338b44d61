/* clock.h - the monotonic clock that deadlines are measured by. */
#ifndef COMMON_RPC_CLOCK_H
#define COMMON_RPC_CLOCK_H

#include <stdint.h>

/* Milliseconds since some moment before this process. */
uint64_t rpc_clock_ms(void);
/* The same clock in nanoseconds, to measure by. */
uint64_t rpc_clock_ns(void);
/* Milliseconds from now to then; 0 when then has passed. */
uint32_t rpc_clock_left_ms(uint64_t then_ms, uint64_t now_ms);

#endif
