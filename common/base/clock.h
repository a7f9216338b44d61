/* clock.h - the time by which work is measured, and that of the calendar. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

/* Seconds of CLOCK_MONOTONIC. */
double clock_now_s(void);
/* Milliseconds since 1970, by this machine's calendar. */
uint64_t clock_unix_ms(void);

#endif
