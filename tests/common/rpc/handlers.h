/* handlers.h - what the servers of the tests answer with. */
#ifndef TESTS_COMMON_RPC_HANDLERS_H
#define TESTS_COMMON_RPC_HANDLERS_H

#include "common/rpc/server.h"
#include "proto/coordinator.pb-c.h"

/* What the handlers of a test saw; their data. */
struct seen {
    size_t count;
    struct rpc_call *kept[128];
    char key[64], caller[32];
    uint64_t client;
};

/* Cancel: done, but NOT_FOUND for a job without a name. */
void handle_cancel(struct rpc_call *call, void *seen);
/* GetJob: at step 41. */
void handle_get_job(struct rpc_call *call, void *data);
/* Any method: keep the call, and answer nothing. */
void handle_by_keeping(struct rpc_call *call, void *seen);

Gimbal__CancelRequest cancel_request(const char *job);

#endif
