/* stranger.h - a caller of the house that is no client of ours. */
#ifndef TESTS_COMMON_RPC_STRANGER_H
#define TESTS_COMMON_RPC_STRANGER_H

#include "common/rpc/transport.h"
#include "tests/common/rpc/fixture.h"

/* A bare REQ socket: whatever bytes we like go where we like. */
struct stranger {
    nng_socket socket;
    nng_aio *aio;
};

/* held: to the port of held calls. */
void stranger_open(struct stranger *stranger, const struct house *house, bool held);
void stranger_close(struct stranger *stranger);
/* Takes the frame; the answer is the aio's. */
void stranger_send(const struct stranger *stranger, nng_msg *frame);
/* A right request, to be made wrong. */
Gimbal__Envelope stranger_request(const char *method);

#endif
