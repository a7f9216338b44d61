/* arena.c - regions as anonymous mappings with a guard page behind each. */
#include "worker/interpreter/arena.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 256      /* of regions on a device, in bytes */
#define POISON 0x7fa57fa5u /* a signalling NaN as f32; both halves are one as bf16 */

struct arena {
    struct {
        char *mapping, *start;
        size_t mapped;
        uint64_t bytes;
        char *there; /* on the device */
    } regions[REGIONS];
    const struct accelerator *accelerator; /* or NULL */
    void *reservation;
    bool pinned; /* the image of the state */
};

/* Rounds up to whole pages. */
static size_t pages(uint64_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* Reserve a region on the host; with an accelerator this is an image, so memory is not committed.
 * The end of the region touches the guard page; its start stays aligned to a cache line because
 * sizes are multiples of one. */
static int arena_reserve_region(struct arena *arena, int region, uint64_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (arena->accelerator ? MAP_NORESERVE : 0);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), usable = pages(bytes);
    char *mapping = mmap(NULL, usable + page, PROT_NONE, flags, -1, 0);
    int scarce = arena->accelerator ? -ENOBUFS : -ENOMEM;
    if (mapping == MAP_FAILED)
        return scarce;
    arena->regions[region].mapping = mapping;
    arena->regions[region].mapped = usable + page;
    arena->regions[region].start = mapping + (usable - bytes);
    arena->regions[region].bytes = bytes;
    return usable && mprotect(mapping, usable, PROT_READ | PROT_WRITE) < 0 ? scarce : 0;
}

/* One device reservation for all regions. */
static int reserve_there(struct arena *arena, const uint64_t bytes[REGIONS], struct error *err)
{
    uint64_t offsets[REGIONS], whole = 0;
    for (int region = 0; region < REGIONS; region++) {
        offsets[region] = whole;
        whole += (bytes[region] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    int rc = arena->accelerator->reserve(whole, &arena->reservation, err);
    for (int region = 0; region < REGIONS && rc == 0; region++)
        arena->regions[region].there = (char *)arena->reservation + offsets[region];
    return rc;
}

int arena_reserve(const uint64_t bytes[REGIONS], char *state, const struct accelerator *accelerator,
                  struct arena **out, struct error *err)
{
    struct arena *arena = xcalloc(1, sizeof *arena);
    struct error why = {""};
    int rc = 0;
    arena->accelerator = accelerator;
    arena->regions[REGION_STATE].start = state;
    arena->regions[REGION_STATE].bytes = bytes[REGION_STATE];
    for (int region = 0; region < REGIONS && rc == 0; region++)
        if (region != REGION_STATE || !state)
            rc = arena_reserve_region(arena, region, bytes[region]);
    if (rc == 0 && accelerator)
        rc = reserve_there(arena, bytes, &why);
    if (rc < 0) {
        char sizes[REGIONS][32];
        for (int region = 0; region < REGIONS; region++)
            units_print_bytes(sizes[region], sizeof sizes[region], (double)bytes[region]);
        arena_release(arena);
        return error_set(err, rc,
                         "cannot reserve memory: state %s, saved activations %s, transients %s, "
                         "communication %s%s%s",
                         sizes[0], sizes[1], sizes[2], sizes[3], *why.text ? ": " : "", why.text);
    }
    *out = arena;
    return 0;
}

void arena_release(struct arena *arena)
{
    if (!arena)
        return;
    if (arena->pinned)
        arena->accelerator->host_unregister(arena->regions[REGION_STATE].start);
    for (int region = 0; region < REGIONS; region++)
        if (arena->regions[region].mapping)
            munmap(arena->regions[region].mapping, arena->regions[region].mapped);
    if (arena->reservation)
        arena->accelerator->release(arena->reservation);
    free(arena);
}

char *arena_region(const struct arena *arena, enum region region)
{
    return arena->accelerator ? arena->regions[region].there : arena->regions[region].start;
}

char *arena_image(const struct arena *arena, enum region region)
{
    return arena->regions[region].start;
}

int arena_pin_state(struct arena *arena, struct error *err)
{
    uint64_t bytes = arena->regions[REGION_STATE].bytes;
    if (!arena->accelerator || arena->pinned || bytes == 0)
        return 0;
    int rc = arena->accelerator->host_register(arena->regions[REGION_STATE].start, bytes, err);
    arena->pinned = rc == 0;
    return rc;
}

void arena_fetch(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes)
{
    if (arena->accelerator)
        arena->accelerator->download(arena_image(arena, region) + offset,
                                     arena_region(arena, region) + offset, bytes);
}

void arena_store(const struct arena *arena, enum region region, uint64_t offset, uint64_t bytes)
{
    if (arena->accelerator)
        arena->accelerator->upload(arena_region(arena, region) + offset,
                                   arena_image(arena, region) + offset, bytes);
}

int arena_finish(const struct arena *arena, struct error *err)
{
    return arena->accelerator ? arena->accelerator->finish(err) : 0;
}

void arena_poison(struct arena *arena)
{
    for (int region = 0; region < REGIONS; region++) {
        uint32_t *words = (uint32_t *)(void *)arena->regions[region].start;
        for (uint64_t i = 0; i < arena->regions[region].bytes / sizeof *words; i++)
            words[i] = POISON;
    }
}

uint64_t arena_touched(const struct arena *arena, enum region region)
{
    const uint32_t *words = (const uint32_t *)(const void *)arena->regions[region].start;
    uint64_t count = arena->regions[region].bytes / sizeof *words;
    while (count > 0 && words[count - 1] == POISON)
        count--;
    return count * sizeof *words;
}
