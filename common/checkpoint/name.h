/* name.h - the names of checkpoint folders, shared by everyone who lists, writes, reads or deletes
 * them. */
#ifndef COMMON_CHECKPOINT_NAME_H
#define COMMON_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
