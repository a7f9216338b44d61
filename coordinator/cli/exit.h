/* exit.h - exit codes for scripts: our own table, close to sysexits.h. */
#ifndef COORDINATOR_CLI_EXIT_H
#define COORDINATOR_CLI_EXIT_H

#include "common/rpc/protocol.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_WAITING = 2, /* accepted, but cannot be placed now */
    EXIT_NO_PLAN = 3, /* no feasible plan */
    EXIT_WARNED = 4,  /* works, but something is not as it should be */
    EXIT_BLOCKED = 5, /* something prevents it from working */
    EXIT_USAGE = 64,
    EXIT_INPUT = 65,       /* a wrong file or name */
    EXIT_UNAVAILABLE = 69, /* no coordinator answers */
    EXIT_INTERNAL = 70,
    EXIT_PRECONDITION = 73, /* no longer true: such as a plan that fits another cluster */
    EXIT_IO = 74,
    EXIT_AGAIN = 75,
    EXIT_PERMISSION = 77,
    EXIT_CONFIGURATION = 78,
    EXIT_TIMEOUT = 124,
    EXIT_SIGNAL = 128, /* plus the signal's number: 130, 143 */
};

/* Explanations for people, by number; the table ends with a row whose `means` is NULL. */
struct exit_meaning {
    int status;
    const char *means;
};
extern const struct exit_meaning exit_meanings[];

/* The exit code of a command whose call ended with this status. */
int exit_of_status(enum rpc_status status);
/* The exit code for a negative errno of our own libraries; EXIT_DONE for 0, EXIT_INPUT for
 * -EINVAL. */
int exit_of_errno(int rc);

#endif
