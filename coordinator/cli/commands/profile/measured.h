/* measured.h - devices and what they were measured to do, kept here or told by nodes: as rows, or
 * in the form of `gimbal nodes -o json`, for which plans are made anywhere. */
#ifndef COORDINATOR_CLI_COMMANDS_PROFILE_MEASURED_H
#define COORDINATOR_CLI_COMMANDS_PROFILE_MEASURED_H

#include "common/hardware/hardware.h"
#include "coordinator/cli/options.h"

struct measured {
    struct hardware_report **reports; /* of a node each */
    size_t count;
};

/* What is kept of this machine, the newest first: all of it for 0, else as so many devices, the
 * newest. Files that are damaged are named on stderr. An enum exit_code; EXIT_INPUT: there is
 * nothing, with what would measure it. *out is the caller's to finish, whatever came out. */
int measured_here(int local, struct measured *out, struct error *err);
/* What the nodes that are the command's arguments have told the coordinator; as above. */
int measured_there(const struct invocation *invocation, struct measured *out, struct error *err);
void measured_print(const struct common *common, const struct measured *measured, FILE *out);
/* Accepts a zeroed one. */
void measured_finish(struct measured *measured);

#endif
