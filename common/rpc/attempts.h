/* attempts.h - inside the client: the attempts at one call, on NNG's threads. */
#ifndef COMMON_RPC_ATTEMPTS_H
#define COMMON_RPC_ATTEMPTS_H

#include "common/rpc/pending.h"

/* Make what its steps run on; a code of NNG. */
int attempts_open(struct rpc_pending *pending);
/* Its first step, after so long. One that is unsendable only ends, after the same. From now on, and
 * until it is done, the call belongs to NNG's threads. */
void attempts_begin(struct rpc_pending *pending, uint32_t delay_ms);

#endif
