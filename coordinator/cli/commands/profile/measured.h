/* measured.h - devices and their measurements, kept here or reported by nodes: as rows, or in the
 * form of `gimbal nodes -o json`, for which plans can be made anywhere. */
#ifndef COORDINATOR_CLI_COMMANDS_PROFILE_MEASURED_H
#define COORDINATOR_CLI_COMMANDS_PROFILE_MEASURED_H

#include "common/hardware/hardware.h"
#include "coordinator/cli/options.h"

struct measured {
    struct hardware_report **reports; /* one per node */
    size_t count;
};

/* What is kept of this machine, newest first: everything if local is 0, otherwise the newest for
 * that number of devices. Damaged files are named on stderr. An enum exit_code; EXIT_INPUT: there
 * is nothing, and the message tells how to measure. The caller finishes *out in any case. */
int measured_here(int local, struct measured *out, struct error *err);
/* What the nodes named by the command's arguments have reported to the coordinator; otherwise as
 * above. */
int measured_there(const struct invocation *invocation, struct measured *out, struct error *err);
void measured_print(const struct common *common, const struct measured *measured, FILE *out);
/* Accepts a zeroed struct. */
void measured_finish(struct measured *measured);

#endif
