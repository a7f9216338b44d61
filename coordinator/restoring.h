/* restoring.h - `gimbal-coordinator --restore FILE`: restores the store from a backup. */
#ifndef COORDINATOR_RESTORING_H
#define COORDINATOR_RESTORING_H

#include "coordinator/settings.h"

/* The folder of the store; *out has to be freed. -EINVAL: the settings name none, and HOME is not
 * set. */
int coordinator_state(const struct coordinator_settings *settings, char **out, struct error *err);
/* Restore the store from `file` and report on stdout what was done. Errors as of
 * store_restore(). */
int restore_from(const struct coordinator_settings *settings, const char *file, struct error *err);

#endif
