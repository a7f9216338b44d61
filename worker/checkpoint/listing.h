/* listing.h - the list of checkpoints that count, for training without a cluster. It is the file
 * ROOT/listed: a line with the epoch, then the name of a checkpoint per line, newest first.
 *
 * In a cluster the coordinator keeps such a list; here the one process that trains does. Every
 * start of the process is an epoch, so that no folder gets a name that an earlier start has used. A
 * lock keeps a second process out. */
#ifndef WORKER_CHECKPOINT_LISTING_H
#define WORKER_CHECKPOINT_LISTING_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct listing;

/* Open the list, in a folder that is created if it is missing, and begin an epoch. At most `keep`
 * checkpoints stay listed. -EBUSY: another process trains there; -EINVAL: the file is no such list;
 * otherwise errors of the folder. */
int listing_open(const char *root, size_t keep, struct listing **out, struct error *err);
/* Accepts NULL. */
void listing_close(struct listing *listing);

/* The epoch of this start. */
uint64_t listing_epoch(const struct listing *listing);
/* Names of the listed checkpoints, newest first; lent until one is added. */
const char *const *listing_names(const struct listing *listing, size_t *count);
/* Add a checkpoint as the newest. Durable and atomic: after a crash there is the new list or the
 * old one. -errno. */
int listing_add(struct listing *listing, const char *name, struct error *err);

/* Find the newest listed checkpoint that is complete and undamaged: *folder is its path, which the
 * caller frees, and *step its step. *folder is NULL if none was ever listed. Damaged ones are
 * logged; -EBADMSG: all of them are. */
int listing_newest(const struct listing *listing, char **folder, uint64_t *step, struct error *err);

#endif
