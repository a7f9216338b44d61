/* protocol.h - what both sides of a call agree on: how it may end, which methods there are and who
 * may call them, and the version of all that. */
#ifndef COMMON_RPC_PROTOCOL_H
#define COMMON_RPC_PROTOCOL_H

#include "common/base/error.h"
#include "proto/envelope.pb-c.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#define RPC_PROTOCOL_MAJOR 1
#define RPC_PROTOCOL_MINOR 0

/* 0 when the major versions are equal and the minor ones at most one apart; else -ESTALE, with a
 * text that names both versions. */
int rpc_check_version(const Gimbal__Envelope *envelope, struct error *err);

/* The result of a call: gRPC's status codes and names. */
enum rpc_status {
    RPC_OK,
    RPC_CANCELLED,
    RPC_UNKNOWN,
    RPC_INVALID_ARGUMENT,
    RPC_DEADLINE_EXCEEDED,
    RPC_NOT_FOUND,
    RPC_ALREADY_EXISTS,
    RPC_PERMISSION_DENIED,
    RPC_RESOURCE_EXHAUSTED,
    RPC_FAILED_PRECONDITION,
    RPC_ABORTED,
    RPC_OUT_OF_RANGE,
    RPC_UNIMPLEMENTED,
    RPC_INTERNAL,
    RPC_UNAVAILABLE,
    RPC_DATA_LOSS,
    RPC_UNAUTHENTICATED,
    RPC_STATUS_COUNT
};

/* "FAILED_PRECONDITION"; "UNKNOWN" for a number that is not a status. */
const char *rpc_status_name(enum rpc_status status);
/* The status that corresponds to a handler's negative errno; RPC_OK for 0. */
enum rpc_status rpc_status_of_errno(int rc);
/* A status received from the network; RPC_UNKNOWN for a number we do not know. */
enum rpc_status rpc_status_of_number(unsigned number);

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

/* A row of a service's one static table. */
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
