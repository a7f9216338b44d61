/* order.h - the order of samples: a seeded permutation that is computed, not stored. */
#ifndef WORKER_DATA_ORDER_H
#define WORKER_DATA_ORDER_H

#include <stdint.h>

/* The window at a position of an epoch, out of `count` windows; position < count <= 2^62. For every
 * (seed, epoch) this is a bijection on 0 .. count-1. */
uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position);

#endif
