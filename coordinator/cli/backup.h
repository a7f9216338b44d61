/* backup.h - `gimbal cluster backup` and `restore`. */
#ifndef COORDINATOR_CLI_BACKUP_H
#define COORDINATOR_CLI_BACKUP_H

#include "coordinator/cli/options.h"

/* What the coordinator has stored, as a file that only its owner can read: whole, or not at all. */
int backup_fetch(const struct common *common, const char *path, struct error *err);
/* Become gimbal-coordinator --restore FILE, with these flags: it knows where its store is. Returns
 * on failure only. */
int backup_restore(char *const *arguments, int count, struct error *err);

#endif
