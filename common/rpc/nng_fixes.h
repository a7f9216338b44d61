/* nng_fixes.h - internal to rpc: what NNG before 1.6 does wrong, mended by linking this file, and
 * only that: with a newer NNG all of it can go.
 *
 * Connections that close during a transfer: NNG's transport reads a message in parts. If the
 * connection closes between two parts, the next part is refused without its callback being run, so
 * the operation never ends, and NNG's only reaper thread waits for it for ever. From then on
 * nng_close() never returns, no connection of the process is made again, and closed connections are
 * no longer reported (NNG issue 616, pull request 1636). Besides, a listener may mistake the
 * failure of one connection for its own and stop accepting.
 *
 * Handshakes without an end: NNG 1.5.2 has no time limit for TLS handshakes that works: its timeout
 * cancels a send while the handshake waits to receive. So anyone who can reach a port could occupy
 * descriptors for as long as they like, without a certificate. */
#ifndef COMMON_RPC_NNG_FIXES_H
#define COMMON_RPC_NNG_FIXES_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Check, before a socket is opened, that NNG's transport really uses the replacements. -ELIBACC if
 * not, so that a program which would hang some day does not start. */
int nng_fixes_check(struct error *err);

/* Shut down connections that were accepted at one of these local ports at least older_ms ago and
 * have not finished their handshake, which NNG treats as a hang-up. Returns how many. */
size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms);

#endif
