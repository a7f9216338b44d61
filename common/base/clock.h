/* clock.h - a monotonic clock to measure durations with, and wall-clock time. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, in seconds. */
double clock_now_s(void);
/* Wall-clock time of this machine, in milliseconds since 1970. */
uint64_t clock_unix_ms(void);

#endif
