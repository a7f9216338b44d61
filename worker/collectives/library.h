/* library.h - what libraries share: members of a group and peers of a message, checked and named in
 * the same way; the cut of what a sum is made of; and the sum in the members' order, used by all
 * that reduce in memory, so that they give equal bits. */
#ifndef WORKER_COLLECTIVES_LIBRARY_H
#define WORKER_COLLECTIVES_LIBRARY_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/graph/operation.h"

#include <stddef.h>

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

/* The chunk [*low, *high) of `count` elements that a member reduces in an all-reduce, by the cut
 * formula count * index / members. */
void collective_chunk(size_t count, int members, int index, size_t *low, size_t *high);
/* The elements of the first `count` of these chunks. */
size_t collective_total(const size_t *counts, int count);

/* In f32, whatever the element: destination[i] = sources[0][i] + sources[1][i] + ..., in this
 * order; or the largest of them, where a NaN wins so that it is noticed. destination may be one of
 * the sources. */
void collective_reduce(enum element element, void *destination, const void *const *sources,
                       int members, size_t count, enum reduction reduction);

#ifdef __cplusplus
}
#endif

#endif
