/* restoring.h - `gimbal-coordinator --restore FILE`: the store, from a backup. */
#ifndef COORDINATOR_RESTORING_H
#define COORDINATOR_RESTORING_H

#include "coordinator/settings.h"

/* The folder of the store; *out is yours. -EINVAL: there is none to be had. */
int coordinator_state(const struct coordinator_settings *settings, char **out, struct error *err);
/* Say on stdout what was done; -errno as store_restore. */
int restore_from(const struct coordinator_settings *settings, const char *file, struct error *err);

#endif
