/* arena.h - the memory of a rank: its four regions, reserved once, before step 0.
 *
 * Every region ends at a page that faults, so that a write beyond a reservation is found where
 * it happens. */
#ifndef WORKER_EXECUTOR_ARENA_H
#define WORKER_EXECUTOR_ARENA_H

#include "common/base/error.h"
#include "common/program/program.h"

struct arena;

/* state: memory for that region, which is the caller's; NULL: it is reserved as well. -ENOMEM: the
 * sentence has the sizes asked for. Memory is zero. */
int arena_reserve(const uint64_t bytes[REGIONS], char *state, struct arena **out,
                  struct error *err);
/* Accepts NULL. */
void arena_release(struct arena *arena);
char *arena_region(const struct arena *arena, enum region region);

/* Fill all of it with a signalling pattern (as f32 a NaN), and later ask how many bytes, from
 * the start of a region, reach to the last one that was written. */
void arena_poison(struct arena *arena);
uint64_t arena_touched(const struct arena *arena, enum region region);

#endif
