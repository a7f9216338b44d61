/* arena.h - the memory of a rank: its four regions, reserved once, before step 0.
 *
 * Every region is followed by a guard page, so that a write past the end of a reservation faults at
 * the instruction that makes it. */
#ifndef WORKER_INTERPRETER_ARENA_H
#define WORKER_INTERPRETER_ARENA_H

#include "common/base/error.h"
#include "common/program/program.h"
#include "worker/kernels/accelerator.h"

struct arena;

/* Reserve all regions, of `bytes` each. If `state` is not NULL it is the memory of the state region
 * and stays the caller's, who must keep it until the arena is released; otherwise that region is
 * reserved as well. Memory on the host starts out zero.
 *
 * Without an accelerator (NULL) the regions are host memory. With one they are one reservation on
 * the device, and each region on the host is an image of it, which takes memory only where it is
 * touched.
 *
 * -ENOMEM with the requested sizes in err: the memory that the program runs in is short (the
 * device's, with an accelerator). -ENOBUFS: with an accelerator, the host's is. */
int arena_reserve(const uint64_t bytes[REGIONS], char *state, const struct accelerator *accelerator,
                  struct arena **out, struct error *err);
/* Release the regions, other than a state region passed in by the caller. */
void arena_release(struct arena *arena);
/* Start of a region where the program runs (region) and where the host reads and writes it (image).
 * The two are the same without an accelerator. */
char *arena_region(const struct arena *arena, enum region region);
char *arena_image(const struct arena *arena, enum region region);
/* Pin the image of the state until the arena is released. All of it then takes memory, and copies
 * run as fast as the device can make them. -ENOBUFS: the host cannot pin that much. Not during a
 * step. This and the three functions below do nothing without an accelerator. */
int arena_pin_state(struct arena *arena, struct error *err);
/* Copy `bytes` of a region from the device to its image (fetch) or from the image to the device
 * (store). Copies are issued to the calling thread's lane and complete when arena_finish returns,
 * which also reports what went wrong with them: -EIO, -ENOMEM or -ENODEV. */
void arena_fetch(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes);
void arena_store(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes);
int arena_finish(const struct arena *arena, struct error *err);

/* Debugging aids. arena_poison fills every image with a signalling NaN; arena_touched returns how
 * many bytes, from the start of a region's image, reach to the last word that has been written
 * since. */
void arena_poison(struct arena *arena);
uint64_t arena_touched(const struct arena *arena, enum region region);

#endif
