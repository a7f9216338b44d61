/* exit.c - from gRPC's codes and errno to exit codes. */
#include "coordinator/cli/exit.h"

#include <errno.h>

int exit_of_status(enum rpc_status status)
{
    static const int codes[RPC_STATUS_COUNT] = {
        [RPC_OK] = EXIT_DONE,
        [RPC_CANCELLED] = EXIT_FAILED,
        [RPC_UNKNOWN] = EXIT_FAILED,
        [RPC_INVALID_ARGUMENT] = EXIT_INPUT,
        [RPC_DEADLINE_EXCEEDED] = EXIT_TIMEOUT,
        [RPC_NOT_FOUND] = EXIT_INPUT,
        [RPC_ALREADY_EXISTS] = EXIT_INPUT,
        [RPC_PERMISSION_DENIED] = EXIT_PERMISSION,
        [RPC_RESOURCE_EXHAUSTED] = EXIT_AGAIN,
        [RPC_FAILED_PRECONDITION] = EXIT_PRECONDITION,
        [RPC_ABORTED] = EXIT_AGAIN,
        [RPC_OUT_OF_RANGE] = EXIT_AGAIN,
        [RPC_UNIMPLEMENTED] = EXIT_CONFIGURATION,
        [RPC_INTERNAL] = EXIT_INTERNAL,
        [RPC_UNAVAILABLE] = EXIT_UNAVAILABLE,
        [RPC_DATA_LOSS] = EXIT_IO,
        [RPC_UNAUTHENTICATED] = EXIT_PERMISSION,
    };
    return codes[rpc_status_of_number((unsigned)status)];
}

int exit_of_errno(int rc)
{
    switch (-rc) {
    case 0:
        return EXIT_DONE;
    case EINVAL:
    case EFBIG:
    case ENOENT:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return EXIT_INPUT;
    case ESTALE:
        return EXIT_PRECONDITION;
    case EACCES:
    case EPERM:
        return EXIT_PERMISSION;
    case EIO:
    case EPIPE:
    case ENOSPC:
    case EROFS:
        return EXIT_IO;
    case ECONNREFUSED:
    case EHOSTDOWN:
        return EXIT_UNAVAILABLE;
    case ETIMEDOUT:
        return EXIT_TIMEOUT;
    case EPROTO:
        return EXIT_INTERNAL;
    default:
        return EXIT_FAILED;
    }
}
