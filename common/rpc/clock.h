/* clock.h - the monotonic clock by which deadlines are measured. */
#ifndef COMMON_RPC_CLOCK_H
#define COMMON_RPC_CLOCK_H

#include <stdint.h>

/* Milliseconds since an arbitrary moment before this process started. */
uint64_t rpc_clock_ms(void);
/* The same clock in nanoseconds, for measurements. */
uint64_t rpc_clock_ns(void);
/* Milliseconds from now to then; 0 when then has passed. */
uint32_t rpc_clock_left_ms(uint64_t then_ms, uint64_t now_ms);

#endif
