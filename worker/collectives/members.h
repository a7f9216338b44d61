/* members.h - the members of a group and the peers of a message: checked and named alike by all
 * libraries. */
#ifndef WORKER_COLLECTIVES_MEMBERS_H
#define WORKER_COLLECTIVES_MEMBERS_H

#include "common/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Finds rank among the members. -EINVAL when it is none of them, or when a member is named twice
 * or is no rank of the world. */
int collective_members_check(const int *ranks, int count, int rank, int world, int *me,
                             struct error *err);
/* "{0,2,5}"; yours to free. */
char *collective_members_print(const int *ranks, int count);
/* -EINVAL unless peer is another rank of the world. */
int collective_peer_check(const char *call, int peer, int rank, int world, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
