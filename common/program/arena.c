/* arena.c - the offset of every buffer, and the size of every region.
 *
 * The reservation is additive over blocks, so that a planner can sum it: state | slots x the
 * saved frames of all blocks | what lives between blocks + the largest block's own transients |
 * communication buffers. Lifetimes matter only inside one block, once, even where a whole
 * stage's would allow less. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>

#define ALIGNMENT 64

static uint64_t align(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* One after the other, in the order in which they were made. */
static uint64_t stack(struct program *p, enum region region)
{
    uint64_t top = 0;
    for (size_t i = 0; i < p->buffer_count; i++) {
        struct buffer *buffer = &p->buffers[i];
        if (buffer->region != region)
            continue;
        buffer->offset = top;
        top += align(buffer->bytes);
    }
    return top;
}

static int section_of(const struct program *p, int instruction)
{
    int section = 0;
    while (section + 1 < SECTIONS && instruction >= p->sections[section + 1].first)
        section++;
    return section;
}

/* The block inside whose forward or backward a transient buffer lives and dies; -1: it goes
 * from one block to the next. Sections outside the blocks count as one block each. */
static int room_of(const struct program *p, const struct buffer *buffer)
{
    int blocks = (int)p->graph->block_count + 1;
    int section = section_of(p, buffer->first), block = p->instructions[buffer->first].block;
    if (section_of(p, buffer->last) != section || p->instructions[buffer->last].block != block)
        return -1;
    return section * blocks + block + 1;
}

static int larger_first(const void *a, const void *b)
{
    const struct buffer *first = *(struct buffer *const *)a, *second = *(struct buffer *const *)b;
    if (first->bytes != second->bytes)
        return first->bytes < second->bytes ? 1 : -1;
    return first < second ? -1 : first > second;
}

static bool alive_together(const struct buffer *a, const struct buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which buffers[index] disturbs none of those placed before it. */
static uint64_t lowest_gap(struct buffer **buffers, size_t index)
{
    uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < index; i++) {
            uint64_t end = buffers[i]->offset + align(buffers[i]->bytes);
            if (alive_together(buffers[i], buffers[index]) && buffers[i]->bytes > 0 &&
                offset < end && buffers[i]->offset < offset + align(buffers[index]->bytes)) {
                offset = end;
                moved = true;
            }
        }
    }
    return offset;
}

/* Greedy by size: the largest first, each as low as it can lie. */
static uint64_t pack(struct buffer **buffers, size_t count)
{
    uint64_t top = 0;
    qsort(buffers, count, sizeof *buffers, larger_first);
    for (size_t i = 0; i < count; i++) {
        buffers[i]->offset = lowest_gap(buffers, i);
        uint64_t end = buffers[i]->offset + align(buffers[i]->bytes);
        top = end > top ? end : top;
    }
    return top;
}

struct tenant {
    int room;
    struct buffer *buffer;
};

static int by_room(const void *a, const void *b)
{
    const struct tenant *first = a, *second = b;
    if (first->room != second->room)
        return first->room < second->room ? -1 : 1;
    return first->buffer < second->buffer ? -1 : first->buffer > second->buffer;
}

static uint64_t pack_transients(struct program *p)
{
    struct tenant *tenants = xcalloc(p->buffer_count, sizeof *tenants);
    struct buffer **buffers = xcalloc(p->buffer_count, sizeof *buffers);
    size_t count = 0;
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].region == REGION_TRANSIENT)
            tenants[count++] = (struct tenant){room_of(p, &p->buffers[i]), &p->buffers[i]};
    qsort(tenants, count, sizeof *tenants, by_room);

    /* Rooms in order: -1, what passes between blocks, comes first and lies below all others. */
    uint64_t between = 0, largest = 0;
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && tenants[next].room == tenants[first].room; next++)
            buffers[next - first] = tenants[next].buffer;
        uint64_t bytes = pack(buffers, next - first);
        if (tenants[first].room == -1) {
            between = bytes;
            continue;
        }
        for (size_t i = 0; i < next - first; i++)
            buffers[i]->offset += between;
        largest = bytes > largest ? bytes : largest;
    }
    free(tenants);
    free(buffers);
    return between + largest;
}

void arena_layout(struct lowering *l)
{
    struct program *p = l->program;
    p->slot_bytes = stack(p, REGION_SAVED);
    p->bytes[REGION_STATE] = stack(p, REGION_STATE);
    p->bytes[REGION_SAVED] = p->slot_bytes * (uint64_t)p->slots;
    p->bytes[REGION_TRANSIENT] = pack_transients(p);
    p->bytes[REGION_COMMUNICATION] = stack(p, REGION_COMMUNICATION);
}
