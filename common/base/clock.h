/* clock.h - the time by which work is measured. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

/* Seconds of CLOCK_MONOTONIC. */
double clock_now_s(void);

#endif
