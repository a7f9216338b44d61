/* name.h - what the folders of checkpoints are called: who lists them and who writes, reads and
 * deletes them must agree about it. */
#ifndef COMMON_CHECKPOINT_NAME_H
#define COMMON_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* "step-40.epoch-2", yours: a checkpoint after 40 steps, written by the job's second plan. */
char *checkpoint_name(uint64_t step, uint64_t epoch);
/* False for what is no such name. */
bool checkpoint_name_parse(const char *name, uint64_t *step, uint64_t *epoch);

/* "DIR/j-7-1f3a90c2", yours: of all checkpoints of a job. The number of its cluster is in it, so
 * that no two jobs anywhere write into one folder, or delete in it. */
char *checkpoint_root(const char *dir, const char *job, uint64_t cluster);

#endif
