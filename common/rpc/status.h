/* status.h - the result of a call: gRPC's status codes and names. */
#ifndef COMMON_RPC_STATUS_H
#define COMMON_RPC_STATUS_H

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

#endif
