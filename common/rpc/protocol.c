/* protocol.c - the table of statuses and their errnos, and look-ups in the table of a service. */
#include "common/rpc/protocol.h"

#include <errno.h>
#include <string.h>

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

int rpc_service_find(const struct rpc_service *service, const char *name)
{
    for (unsigned i = 0; i < service->descriptor->n_methods; i++)
        if (strcmp(service->methods[i].name, name) == 0)
            return (int)i;
    return -1;
}

size_t rpc_service_request_bytes_max(const struct rpc_service *service)
{
    size_t most = 0;
    for (unsigned i = 0; i < service->descriptor->n_methods; i++)
        if (service->methods[i].request_bytes_max > most)
            most = service->methods[i].request_bytes_max;
    return most;
}

int rpc_check_version(const Gimbal__Envelope *envelope, struct error *err)
{
    uint32_t low = envelope->protocol_minor, high = RPC_PROTOCOL_MINOR;
    if (low > high) {
        low = RPC_PROTOCOL_MINOR;
        high = envelope->protocol_minor;
    }
    if (envelope->protocol_major == RPC_PROTOCOL_MAJOR && high - low <= 1)
        return 0;
    return error_set(err, -ESTALE,
                     "protocol %u.%u meets protocol %d.%d: major versions must be equal and minor "
                     "versions at most one apart; install the same release on both sides",
                     envelope->protocol_major, envelope->protocol_minor, RPC_PROTOCOL_MAJOR,
                     RPC_PROTOCOL_MINOR);
}
