/* listing.h - which checkpoints of a training without a cluster count: ROOT/listed, a name a line,
 * the newest first, behind a line with the epoch.
 *
 * In a cluster the coordinator lists them; here the one process that trains does. Every start is an
 * epoch, so that no folder has the name of one that an earlier start has left; and a lock keeps a
 * second process out. */
#ifndef WORKER_CHECKPOINT_LISTING_H
#define WORKER_CHECKPOINT_LISTING_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct listing;

/* root is made where it is missing; at most `keep` are listed. -EBUSY: another process trains
 * there; -EINVAL: the list is none; what the folder says. */
int listing_open(const char *root, size_t keep, struct listing **out, struct error *err);
/* Accepts NULL. */
void listing_close(struct listing *listing);

uint64_t listing_epoch(const struct listing *listing);
/* The names, the newest first; lent until the next is added. */
const char *const *listing_names(const struct listing *listing, size_t *count);
/* Durably: the new list or the old one. -errno. */
int listing_add(struct listing *listing, const char *name, struct error *err);

/* The path of the newest that is whole and undamaged, yours, and its step; NULL where none was ever
 * listed. Damaged ones are logged. -EBADMSG: all are. */
int listing_newest(const struct listing *listing, char **folder, uint64_t *step, struct error *err);

#endif
