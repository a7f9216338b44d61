/* reduce.h - the reduction used by all libraries that reduce in memory, so that they give equal
 * bits. */
#ifndef WORKER_COLLECTIVES_REDUCE_H
#define WORKER_COLLECTIVES_REDUCE_H

#include "common/base/element.h"
#include "common/graph/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In f32, whatever the element: destination[i] = sources[0][i] + sources[1][i] + ..., in this
 * order; or the largest of them, where a NaN wins so that it is noticed. destination may be one of
 * the sources. */
void collective_reduce(enum element element, void *destination, const void *const *sources,
                       int members, size_t count, enum reduction reduction);

#ifdef __cplusplus
}
#endif

#endif
