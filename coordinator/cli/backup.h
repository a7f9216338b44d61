/* backup.h - `gimbal cluster backup` and `restore`. */
#ifndef COORDINATOR_CLI_BACKUP_H
#define COORDINATOR_CLI_BACKUP_H

#include "coordinator/cli/options.h"

/* Save a copy of the coordinator's store as a file that only its owner can read; the file appears
 * complete or not at all. Returns an enum exit_code. */
int backup_fetch(const struct common *common, const char *path, struct error *err);
/* Replace this process by gimbal-coordinator --restore with these arguments, the backup's file
 * first: it knows where its store is. Returns only on failure, an enum exit_code. */
int backup_restore(char *const *arguments, int count, struct error *err);

#endif
