/* handshakes.h - connections that were accepted and have said nothing yet that makes them one.
 *
 * NNG 1.5.2 gives a TLS handshake no time limit: the one that it sets ends nothing, since it
 * cancels a send while the handshake waits to receive. So whoever can reach a port could keep
 * descriptors for as long as he likes, without a certificate. Here accepted connections are noted,
 * in the place of the C library's accept, until the first byte of ours that comes after a
 * handshake; those that take too long are shut down, which NNG takes for a hang-up. */
#ifndef COMMON_RPC_HANDSHAKES_H
#define COMMON_RPC_HANDSHAKES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Inside rpc: bytes are sent; ends the note where they are no part of a handshake. */
void handshakes_sent(int fd, const struct msghdr *message);
/* Shut down what was accepted at one of these local ports so long ago, or longer, and is no
 * connection yet; returns how many. */
size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms);

#endif
