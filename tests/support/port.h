/* port.h - ports for a listener that stops and starts again.
 *
 * Binding to port 0 gives an ephemeral port, which Linux also gives to outgoing connections; one of
 * them may take it while the listener is away. These ports lie below the ephemeral ones. */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

#include <stdint.h>

/* The first of `count`, at most 8, consecutive ports of 127.0.0.1 that are free at the moment. No
 * other test gets them while this process lives. Fails the test if there are none. */
uint16_t port_choose(unsigned count);

#endif
