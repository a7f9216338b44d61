/* dialing.h - inside the client: dial and wait, but not for ever.
 *
 * NNG waits for ten seconds until a peer that takes connections also speaks: a process that is
 * stopped does not. */
#ifndef COMMON_RPC_DIALING_H
#define COMMON_RPC_DIALING_H

#include <nng/nng.h>
#include <stdint.h>

/* Start the dialer and wait until it is connected, at most so long; one of NNG's codes,
 * NNG_ETIMEDOUT when the time is over: then the dialer is closed. 0 ms: as long as NNG waits. */
int dialing_start(nng_dialer dialer, uint32_t patience_ms);

#endif
