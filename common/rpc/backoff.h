/* backoff.h - how long to wait before a call is tried again. */
#ifndef COMMON_RPC_BACKOFF_H
#define COMMON_RPC_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 2000

/* The pause after failure number `attempt`, counted from 0, in milliseconds. It doubles from
 * BACKOFF_MS_MIN up to BACKOFF_MS_MAX. `uniform`, a random number in [0, 1), takes up to half of it
 * away, so that callers that failed together do not come back together. */
uint32_t backoff_ms(unsigned attempt, double uniform);

#endif
