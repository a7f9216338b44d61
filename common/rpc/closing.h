/* closing.h - connections that close while something is on its way over them.
 *
 * NNG before 1.6 does not get over that. Its transport reads a message in parts; when the
 * connection is closed between two of them, the next part is refused without a word, the
 * operation that waits for the message never ends, and the one thread of NNG that takes closed
 * connections apart waits for it for ever. From then on nng_close never returns, no connection of
 * the process is made again, and nobody is told of one that closed (NNG's issue 616 and pull
 * request 1636). And a listener may take what befell one connection for its own end, and accept
 * nobody any more. Linking this file mends both. */
#ifndef COMMON_RPC_CLOSING_H
#define COMMON_RPC_CLOSING_H

#include "common/base/error.h"

/* Called before a socket is opened: -ELIBACC when NNG's transport does not use what is mended
 * here, so that a program which would hang some day does not start. */
int closing_check(struct error *err);

#endif
