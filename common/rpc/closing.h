/* closing.h - works around two bugs of NNG before 1.6 with connections that close during a
 * transfer.
 *
 * NNG's transport reads a message in parts. If the connection closes between two parts, the next
 * part is refused without its callback being run, so the operation never ends, and NNG's only
 * reaper thread waits for it for ever. From then on nng_close() never returns, no connection of the
 * process is made again, and closed connections are no longer reported (NNG issue 616, pull request
 * 1636). Besides, a listener may mistake the failure of one connection for its own and stop
 * accepting. Linking this file fixes both. */
#ifndef COMMON_RPC_CLOSING_H
#define COMMON_RPC_CLOSING_H

#include "common/base/error.h"

/* Check, before a socket is opened, that NNG's transport really uses the replacements. -ELIBACC if
 * not, so that a program which would hang some day does not start. */
int closing_check(struct error *err);

#endif
