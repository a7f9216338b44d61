/* method.h - the methods of a service and who may call them: one static table per service. */
#ifndef COMMON_RPC_METHOD_H
#define COMMON_RPC_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

enum rpc_kind {
    RPC_UNARY,         /* answered as soon as the work is done */
    RPC_HELD,          /* may be parked until there is something to tell; has a socket of its own */
    RPC_CLIENT_STREAM, /* carries a batch of numbered records, acknowledged cumulatively */
};

/* The roles of callers. A listener lets a set of them in, a method is open to a set of them. */
enum rpc_role {
    RPC_WORKER = 1,
    RPC_USER = 2,
    RPC_ADMIN = 4,
    RPC_EVERYBODY = 7,
};

struct rpc_method {
    const char *name;  /* as in the descriptor; people read it in logs and metrics only */
    const char *asked; /* what a call of it asks for, in words that follow "the request" */
    enum rpc_kind kind;
    unsigned roles;  /* that may call it */
    bool idempotent; /* may be sent twice; a call of any other method needs an idempotency key */
    bool any_term;   /* may be called without knowing the term */
    size_t request_bytes_max;
    bool to_strangers; /* may be called by one of these roles without a credential */
};

struct rpc_service {
    const ProtobufCServiceDescriptor *descriptor;
    const struct rpc_method *methods; /* in the descriptor's order */
};

/* The index of a method, or -1. */
int rpc_service_find(const struct rpc_service *service, const char *name);
/* The largest request that any method takes. */
size_t rpc_service_request_bytes_max(const struct rpc_service *service);

/* The largest reply; a method that has more to tell answers in parts. */
#define RPC_REPLY_BYTES_MAX ((size_t)16 << 20)

#endif
