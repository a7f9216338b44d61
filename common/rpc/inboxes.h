/* inboxes.h - the inboxes (sequence.h) of all (client, stream) pairs that push records to us.
 *
 * When there are too many, the least recently used one is dropped. A client whose inbox was dropped
 * continues wherever it is, so at worst one batch in flight is counted twice. */
#ifndef COMMON_RPC_INBOXES_H
#define COMMON_RPC_INBOXES_H

#include "common/rpc/sequence.h"

struct inboxes;

struct inboxes *inboxes_create(size_t count_max);
/* Accepts NULL. */
void inboxes_destroy(struct inboxes *inboxes);
/* The inbox of a pair, created if there is none. Valid until the next call. */
struct inbox *inboxes_get(struct inboxes *inboxes, uint64_t client, const char *stream);

#endif
