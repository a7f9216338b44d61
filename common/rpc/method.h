/* method.h - what can be called, and by whom: one static table per service. */
#ifndef COMMON_RPC_METHOD_H
#define COMMON_RPC_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

enum rpc_kind {
    RPC_UNARY,         /* answered at once, or as soon as the work is done */
    RPC_HELD,          /* parked until there is something to say; on a socket of its own */
    RPC_CLIENT_STREAM, /* a batch of numbered records, acknowledged cumulatively */
};

/* Whom a listener lets in; a method is open to a set of them. */
enum rpc_role {
    RPC_WORKER = 1,
    RPC_USER = 2,
    RPC_ADMIN = 4,
    RPC_EVERYBODY = 7,
};

struct rpc_method {
    const char *name; /* as the descriptor has it */
    enum rpc_kind kind;
    unsigned roles;
    bool idempotent; /* may be sent twice; any other call must carry an idempotency key */
    bool any_term;   /* open to a caller that does not know the term yet */
    size_t request_bytes_max;
    bool to_strangers; /* open to a caller of the role that has no credential yet */
};

struct rpc_service {
    const ProtobufCServiceDescriptor *descriptor;
    const struct rpc_method *methods; /* in the descriptor's order */
};

/* Index of the method, or -1. */
int rpc_service_find(const struct rpc_service *service, const char *name);
/* The largest request that any method takes. */
size_t rpc_service_request_bytes_max(const struct rpc_service *service);

/* A reply may not be larger; a method that has more to say answers in parts. */
#define RPC_REPLY_BYTES_MAX ((size_t)16 << 20)

#endif
