/* handlers.c - the smallest handlers that show what came in. */
#include "tests/common/rpc/handlers.h"

#include <check.h>
#include <stdio.h>

void handle_cancel(struct rpc_call *call, void *data)
{
    const Gimbal__CancelRequest *request = rpc_call_request(call);
    struct seen *seen = data;
    seen->count++;
    snprintf(seen->caller, sizeof seen->caller, "%s", rpc_call_envelope(call)->caller);
    seen->client = rpc_call_envelope(call)->client;
    if (*request->job) {
        Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
        rpc_call_reply(call, &reply.base);
    } else {
        rpc_call_fail(call, RPC_NOT_FOUND, "there is no job '%s'", request->job);
    }
}

void handle_get_job(struct rpc_call *call, void *data)
{
    const Gimbal__GetJobRequest *request = rpc_call_request(call);
    Gimbal__JobStatus status = GIMBAL__JOB_STATUS__INIT;
    Gimbal__GetJobReply reply = GIMBAL__GET_JOB_REPLY__INIT;
    (void)data;
    status.job = request->job;
    status.step = 41;
    reply.status = &status;
    rpc_call_reply(call, &reply.base);
}

void handle_by_keeping(struct rpc_call *call, void *data)
{
    struct seen *seen = data;
    ck_assert_uint_lt(seen->count, 128);
    snprintf(seen->key, sizeof seen->key, "%s", rpc_call_envelope(call)->idempotency_key);
    seen->kept[seen->count++] = call;
}

Gimbal__CancelRequest cancel_request(const char *job)
{
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    request.job = (char *)job;
    return request;
}
