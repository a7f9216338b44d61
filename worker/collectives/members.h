/* members.h - members of a group and peers of a message, checked and named in the same way by all
 * libraries. */
#ifndef WORKER_COLLECTIVES_MEMBERS_H
#define WORKER_COLLECTIVES_MEMBERS_H

#include "common/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check the members of a group, and find rank among them: *me is its index. -EINVAL if it is not a
 * member, or if a member is named twice or is not below `world`. */
int collective_members_check(const int *ranks, int count, int rank, int world, int *me,
                             struct error *err);
/* Such as "{0,2,5}"; the caller frees it. */
char *collective_members_print(const int *ranks, int count);
/* -EINVAL unless peer is another rank below `world`; `call` is named in err. */
int collective_peer_check(const char *call, int peer, int rank, int world, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
