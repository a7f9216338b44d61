/* attempts.h - internal to the client: the attempts at one call, which run on NNG's threads. */
#ifndef COMMON_RPC_ATTEMPTS_H
#define COMMON_RPC_ATTEMPTS_H

#include "common/rpc/pending.h"

/* Allocate the two on which the steps run. Returns an NNG error code. */
int attempts_open(struct rpc_pending *pending);
/* Begin the first attempt after delay_ms; a call that is unsendable just ends after it. From here
 * until it is done the call belongs to NNG's threads. */
void attempts_begin(struct rpc_pending *pending, uint32_t delay_ms);

#endif
