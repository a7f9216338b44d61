/* folders.h - where things lie on disk, by names that several programs agree on: a daemon's state,
 * which must survive it; the cache, which can be recreated; and checkpoints, which are listed,
 * written, read and deleted by different programs. */
#ifndef COMMON_CONFIG_FOLDERS_H
#define COMMON_CONFIG_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>

/* The state folder of a daemon ("worker"), freed by the caller: what systemd assigns
 * (STATE_DIRECTORY), else /var/lib/gimbal/NAME for root, else gimbal/NAME in XDG_STATE_HOME or
 * ~/.local/state. NULL when HOME is not set either. */
char *state_folder(const char *name);
/* The user's cache folder, freed by the caller: gimbal in XDG_CACHE_HOME or ~/.cache. NULL as
 * above. */
char *cache_folder(void);

/* "step-40.epoch-2": a checkpoint after 40 steps, written by the job's second plan. Freed by the
 * caller. */
char *checkpoint_name(uint64_t step, uint64_t epoch);
/* False when it is not such a name. */
bool checkpoint_name_parse(const char *name, uint64_t *step, uint64_t *epoch);

/* "DIR/j-7-1f3a90c2": the folder of all checkpoints of a job, freed by the caller. It contains the
 * cluster's number, so that no two jobs anywhere write or delete in the same folder. */
char *checkpoint_root(const char *dir, const char *job, uint64_t cluster);
/* "DIR/bottles-local": the same of a job of this name that is trained without a cluster. */
char *checkpoint_root_local(const char *dir, const char *name);

/* "ROOT/.nodes/node-a": what this node has left in the folder below which the cluster saves jobs,
 * so that others see that they share it. Freed by the caller. */
char *node_mark_path(const char *root, const char *node);

#endif
