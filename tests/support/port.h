/* port.h - ports for a listener that ends and comes back.
 *
 * Port 0 takes one of those that Linux also gives to whoever dials; while the listener is away,
 * somebody's connection may have it. These are below them. */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

#include <stdint.h>

/* The first of `count`, at most 8, neighbouring ports of 127.0.0.1 that are free now. No other test
 * is given them while this process lives. */
uint16_t port_choose(unsigned count);

#endif
