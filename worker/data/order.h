/* order.h - the order of samples: a seeded permutation of which nothing is stored. */
#ifndef WORKER_DATA_ORDER_H
#define WORKER_DATA_ORDER_H

#include <stdint.h>

/* Which of count windows stands at a position of an epoch; position < count <= 2^62. For each
 * (seed, epoch) a bijection of 0 .. count-1. */
uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position);

#endif
