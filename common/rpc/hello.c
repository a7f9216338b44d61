/* hello.c - the handler of Hello, which tells a caller the term and the port for held calls. */
#include "common/rpc/call.h"

void rpc_hello(struct rpc_call *call, void *data)
{
    (void)data;
    const struct rpc_server_options *options = &call->server->options;
    Gimbal__HelloReply reply = GIMBAL__HELLO_REPLY__INIT;
    reply.release = (char *)(options->release ? options->release : "");
    reply.term = options->term;
    reply.instance = options->instance;
    reply.cluster = options->cluster;
    reply.held_port = call->listener->held_port;
    reply.unix_ms = options->calendar_cb ? options->calendar_cb() : 0;
    rpc_call_reply(call, &reply.base);
}
