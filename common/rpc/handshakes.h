/* handshakes.h - a time limit for TLS handshakes.
 *
 * NNG 1.5.2 has none that works: its timeout cancels a send while the handshake waits to receive.
 * So anyone who can reach a port could occupy descriptors for as long as they like, without a
 * certificate. This module replaces the C library's accept functions and notes every accepted
 * connection until we send the first byte that is not part of a handshake. Connections that take
 * too long are shut down, which NNG treats as a hang-up. */
#ifndef COMMON_RPC_HANDSHAKES_H
#define COMMON_RPC_HANDSHAKES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Internal to rpc: these bytes are being sent. Forgets the connection if they are not part of a
 * handshake. */
void handshakes_sent(int fd, const struct msghdr *message);
/* Shut down connections that were accepted at one of these local ports at least older_ms ago and
 * have not finished their handshake. Returns how many. */
size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms);

#endif
