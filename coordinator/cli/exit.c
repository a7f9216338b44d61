/* exit.c - maps the status of a call and errno values to exit codes. */
#include "coordinator/cli/exit.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

const struct exit_meaning exit_meanings[] = {
    {EXIT_DONE, "success; with --wait and --follow: the job is DONE"},
    {EXIT_FAILED, "the job, or the command, has failed, or the job was cancelled"},
    {EXIT_WAITING, "accepted, but no device is free for it now: the job waits"},
    {EXIT_NO_PLAN, "no plan fits the devices"},
    {EXIT_WARNED, "it works, but something is not as it should be"},
    {EXIT_BLOCKED, "something keeps it from working (doctor)"},
    {EXIT_USAGE, "the command line is wrong"},
    {EXIT_INPUT, "a file or a name given on the command line is wrong"},
    {EXIT_UNAVAILABLE, "no coordinator answers"},
    {EXIT_INTERNAL, "an internal error: 'gimbal support' gathers what a report needs"},
    {EXIT_PRECONDITION, "something no longer holds, such as a plan for devices that are gone"},
    {EXIT_IO, "a file or stdout cannot be read or written, or the job's last step not be saved"},
    {EXIT_AGAIN, "not now: try again later"},
    {EXIT_PERMISSION, "not allowed, by the certificate, the credential or the file system"},
    {EXIT_CONFIGURATION, "the settings are wrong"},
    {EXIT_TIMEOUT, "the time of --timeout is over"},
    {EXIT_SIGNAL + SIGINT, "ended by SIGINT (Ctrl-C)"},
    {EXIT_SIGNAL + SIGPIPE, "nobody reads what it prints any more"},
    {EXIT_SIGNAL + SIGTERM, "ended by SIGTERM"},
    {0, NULL},
};

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
    case EEXIST:
    case ENOENT:
    case ENODEV:
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
