/* stranger.h - a caller that speaks no protocol of ours: any frame, to any port. */
#ifndef TESTS_CLUSTER_STRANGER_H
#define TESTS_CLUSTER_STRANGER_H

#include "proto/envelope.pb-c.h"

#include <nng/nng.h>

/* Send the frame to the address, at its own port where this one is 0: what NNG says, and the
 * answer if there is one. Takes the frame. */
int stranger_ask(const char *address, uint16_t port, nng_msg *frame, Gimbal__Envelope **answer);
/* That of bytes, filled up with zeros to size. */
nng_msg *stranger_frame(const char *bytes, size_t size);
/* A Hello of the next major version. */
nng_msg *stranger_hello_of_next_major(void);

#endif
