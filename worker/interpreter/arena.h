/* arena.h - the memory of a rank: its four regions, reserved once, before step 0.
 *
 * Every region ends at a page that faults, so that a write beyond a reservation is found where
 * it happens. */
#ifndef WORKER_INTERPRETER_ARENA_H
#define WORKER_INTERPRETER_ARENA_H

#include "common/base/error.h"
#include "common/program/program.h"
#include "worker/kernels/accelerator.h"

struct arena;

/* state: memory for that region, which is the caller's until the arena is released; NULL: it is
 * reserved as well. -ENOMEM: the sentence has the sizes asked for; with an accelerator that is its
 * memory, and -ENOBUFS the host's. The host's memory is zero. With an accelerator, NULL without,
 * regions lie in its memory, in one reservation, and what the host has is an image of them: it
 * takes memory only where it is used. */
int arena_reserve(const uint64_t bytes[REGIONS], char *state, const struct accelerator *accelerator,
                  struct arena **out, struct error *err);
/* Accepts NULL. */
void arena_release(struct arena *arena);
/* Where the program runs, and where the host reads and writes: without an accelerator the same. */
char *arena_region(const struct arena *arena, enum region region);
char *arena_image(const struct arena *arena, enum region region);
/* The image of the state is pinned until the arena is released: it takes memory, all of it, and
 * comes and goes as fast as the device can. -ENOBUFS: it cannot be. Not during a step. Without an
 * accelerator there is nothing to do, here and below. */
int arena_pin_state(struct arena *arena, struct error *err);
/* Bytes of a region from the device into the image, and the other way, in the calling thread's
 * lane. They are there when it is finished: -EIO, -ENOMEM or -ENODEV, in words. */
void arena_fetch(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes);
void arena_store(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes);
int arena_finish(const struct arena *arena, struct error *err);

/* Fill all of the image with a signalling pattern (as f32 a NaN), and later ask how many bytes of
 * it, from the start of a region, reach to the last one that was written. */
void arena_poison(struct arena *arena);
uint64_t arena_touched(const struct arena *arena, enum region region);

#endif
