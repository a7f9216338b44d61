/* status.c - the table of status codes, names and errnos. */
#include "common/rpc/status.h"

#include <errno.h>

/* Indexed by status. At most two errnos map to one status; an errno maps to the first row that has
 * it. */
static const struct {
    const char *name;
    int error;
    int also;
} statuses[RPC_STATUS_COUNT] = {
    [RPC_OK] = {"OK", 0, 0},
    [RPC_CANCELLED] = {"CANCELLED", ECANCELED, EINTR},
    [RPC_UNKNOWN] = {"UNKNOWN", EREMOTEIO, 0},
    [RPC_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", EINVAL, EDOM},
    [RPC_DEADLINE_EXCEEDED] = {"DEADLINE_EXCEEDED", ETIMEDOUT, ETIME},
    [RPC_NOT_FOUND] = {"NOT_FOUND", ENOENT, ESRCH},
    [RPC_ALREADY_EXISTS] = {"ALREADY_EXISTS", EEXIST, 0},
    [RPC_PERMISSION_DENIED] = {"PERMISSION_DENIED", EACCES, EPERM},
    [RPC_RESOURCE_EXHAUSTED] = {"RESOURCE_EXHAUSTED", ENOSPC, ENOMEM},
    [RPC_FAILED_PRECONDITION] = {"FAILED_PRECONDITION", ESTALE, EBUSY},
    [RPC_ABORTED] = {"ABORTED", ECONNABORTED, EAGAIN},
    [RPC_OUT_OF_RANGE] = {"OUT_OF_RANGE", ERANGE, 0},
    [RPC_UNIMPLEMENTED] = {"UNIMPLEMENTED", ENOSYS, EOPNOTSUPP},
    [RPC_INTERNAL] = {"INTERNAL", EPROTO, EIO},
    [RPC_UNAVAILABLE] = {"UNAVAILABLE", EHOSTDOWN, ECONNREFUSED},
    [RPC_DATA_LOSS] = {"DATA_LOSS", EBADMSG, 0},
    [RPC_UNAUTHENTICATED] = {"UNAUTHENTICATED", EKEYREJECTED, 0},
};

const char *rpc_status_name(enum rpc_status status)
{
    return statuses[rpc_status_of_number((unsigned)status)].name;
}

enum rpc_status rpc_status_of_errno(int rc)
{
    if (rc == 0)
        return RPC_OK;
    for (unsigned i = 1; i < RPC_STATUS_COUNT; i++)
        if (statuses[i].error == -rc || (statuses[i].also && statuses[i].also == -rc))
            return (enum rpc_status)i;
    return RPC_UNKNOWN;
}

enum rpc_status rpc_status_of_number(unsigned number)
{
    return number < RPC_STATUS_COUNT ? (enum rpc_status)number : RPC_UNKNOWN;
}
