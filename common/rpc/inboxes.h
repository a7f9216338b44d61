/* inboxes.h - the inbox of every (client, stream) that pushes records to us.
 *
 * The ones used least recently make room for new ones. A client whose inbox was forgotten is
 * taken up where it is, so that at worst a batch under way counts twice. */
#ifndef COMMON_RPC_INBOXES_H
#define COMMON_RPC_INBOXES_H

#include "common/rpc/sequence.h"

struct inboxes;

struct inboxes *inboxes_create(size_t count_max);
/* Accepts NULL. */
void inboxes_destroy(struct inboxes *inboxes);
/* Lent until the next call; made where there was none. */
struct inbox *inboxes_get(struct inboxes *inboxes, uint64_t client, const char *stream);

#endif
