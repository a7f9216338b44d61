/* arena.c - assigns an offset to every buffer and a size to every region.
 *
 * The layout is simple enough for a planner to sum it up over blocks and joints: the state; slots x
 * the saved buffers of all blocks; the transients of the largest room; and the communication
 * buffers. Lifetimes matter only inside a room; a buffer that passes from room to room takes its
 * space in all of them.
 *
 * What moves beside computation (gathered weights, gradients being reduced) exists while the room
 * before or after is computed. For it the communication region has two sides, each as large as the
 * largest room needs, which rooms use in turn. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define ALIGNMENT 64

uint64_t arena_align(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Places the buffers of a region one after another, in the order in which they were made, leaving
 * out those beside computation. Returns the size. */
static uint64_t stack(struct program *p, enum region region)
{
    uint64_t top = 0;
    for (size_t i = 0; i < p->buffer_count; i++) {
        struct buffer *buffer = &p->buffers[i];
        if (buffer->region != region || buffer->beside)
            continue;
        buffer->offset = top;
        top += arena_align(buffer->bytes);
    }
    return top;
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

/* The lowest offset at which buffers[index] overlaps none of buffers[0 .. index - 1] that are alive
 * at the same time. */
static uint64_t lowest_gap(struct buffer **buffers, size_t index)
{
    uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < index; i++) {
            uint64_t end = buffers[i]->offset + arena_align(buffers[i]->bytes);
            if (alive_together(buffers[i], buffers[index]) && buffers[i]->bytes > 0 &&
                offset < end && buffers[i]->offset < offset + arena_align(buffers[index]->bytes)) {
                offset = end;
                moved = true;
            }
        }
    }
    return offset;
}

/* Places the buffers of one room greedily: the largest first, each as low as possible. Returns the
 * size. */
static uint64_t pack(struct buffer **buffers, size_t count)
{
    uint64_t top = 0;
    qsort(buffers, count, sizeof *buffers, larger_first);
    for (size_t i = 0; i < count; i++) {
        buffers[i]->offset = lowest_gap(buffers, i);
        uint64_t end = buffers[i]->offset + arena_align(buffers[i]->bytes);
        top = end > top ? end : top;
    }
    return top;
}

/* Transient buffers by their rooms. Tenants live in one room; those of a room are
 * tenants[first[room]] to tenants[first[room + 1] - 1]. Passing buffers live in several rooms. */
struct house {
    struct buffer **tenants, **passing;
    size_t *first, passing_count;
    enum end { END_NONE, END_BOTTOM, END_TOP } * ends; /* of the region, per passing buffer */
};

static bool passes(const struct buffer *buffer)
{
    return buffer->room_first != buffer->room_last;
}

static void house_init(struct house *house, struct program *p, int rooms)
{
    *house = (struct house){0};
    house->tenants = xcalloc(p->buffer_count, sizeof *house->tenants);
    house->passing = xcalloc(p->buffer_count, sizeof *house->passing);
    house->ends = xcalloc(p->buffer_count, sizeof *house->ends);
    house->first = xcalloc((size_t)rooms + 2, sizeof *house->first);
    for (size_t i = 0; i < p->buffer_count; i++) {
        struct buffer *buffer = &p->buffers[i];
        if (buffer->region != REGION_TRANSIENT)
            continue;
        if (passes(buffer))
            house->passing[house->passing_count++] = buffer;
        else
            house->first[buffer->room_first + 2]++;
    }
    for (int room = 0; room < rooms; room++)
        house->first[room + 2] += house->first[room + 1];
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].region == REGION_TRANSIENT && !passes(&p->buffers[i]))
            house->tenants[house->first[p->buffers[i].room_first + 1]++] = &p->buffers[i];
}

static void house_finish(struct house *house)
{
    free(house->tenants);
    free(house->passing);
    free(house->ends);
    free(house->first);
}

static bool is_in(const struct buffer *buffer, int room)
{
    return buffer->room_first <= room && room <= buffer->room_last;
}

/* The order in which passing buffers are placed, from the ends of the region inwards: by first
 * room, and among equals those that stay longer first. */
static int outer_first(const void *a, const void *b)
{
    const struct buffer *first = *(struct buffer *const *)a, *second = *(struct buffer *const *)b;
    if (first->room_first != second->room_first)
        return first->room_first - second->room_first;
    if (first->room_last != second->room_last)
        return second->room_last - first->room_last;
    return first < second ? -1 : first > second;
}

/* Can the buffer be placed at this end of the region, inside of those already there? *bytes is what
 * they take while the buffer is alive. It can if all of them stay at least as long as the buffer,
 * so that no gap opens outside of it. */
static bool has_room(const struct house *house, size_t index, bool bottom, uint64_t *bytes)
{
    const struct buffer *buffer = house->passing[index];
    *bytes = 0;
    for (size_t i = 0; i < index; i++) {
        const struct buffer *other = house->passing[i];
        if (house->ends[i] != (bottom ? END_BOTTOM : END_TOP) || other->bytes == 0 ||
            other->room_last < buffer->room_first)
            continue;
        if (other->room_last < buffer->room_last)
            return false;
        *bytes += arena_align(other->bytes);
    }
    return true;
}

/* Places passing buffers at the two ends of the region, so that tenants get the rest in one piece:
 * inside of those that stay longer, or else at an empty end. If neither is possible the buffer goes
 * on top, and the region grows beyond its largest room; in a chain of blocks with one input each
 * this does not happen. Returns the size. */
static uint64_t place_passing(struct house *house, uint64_t total)
{
    uint64_t within = total;
    if (house->passing_count > 1)
        qsort(house->passing, house->passing_count, sizeof *house->passing, outer_first);
    for (size_t i = 0; i < house->passing_count; i++) {
        struct buffer *buffer = house->passing[i];
        uint64_t bytes = arena_align(buffer->bytes), below, above;
        bool at_bottom = has_room(house, i, true, &below),
             at_top = has_room(house, i, false, &above);
        bool bottom = at_bottom && (below > 0 || !at_top || above == 0);
        house->ends[i] = bottom ? END_BOTTOM : at_top ? END_TOP : END_NONE;
        buffer->offset = bottom ? below : at_top ? within - above - bytes : total;
        total += bottom || at_top ? 0 : bytes;
    }
    return total;
}

/* The offset at which a room's tenants begin: above what passes through it at the bottom. */
static uint64_t bottom_of(const struct house *house, int room)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < house->passing_count; i++)
        if (house->ends[i] == END_BOTTOM && is_in(house->passing[i], room))
            bytes += arena_align(house->passing[i]->bytes);
    return bytes;
}

static uint64_t pack_transients(struct lowering *l)
{
    struct program *p = l->program;
    int rooms = l->room + 1;
    struct house house;
    uint64_t total = 0;
    house_init(&house, p, rooms);
    if (l->part)
        l->room_bytes = xcalloc((size_t)rooms, sizeof *l->room_bytes);
    for (int room = 0; room < rooms; room++) {
        uint64_t here =
            pack(&house.tenants[house.first[room]], house.first[room + 1] - house.first[room]);
        for (size_t i = 0; i < house.passing_count; i++)
            here += is_in(house.passing[i], room) ? arena_align(house.passing[i]->bytes) : 0;
        total = here > total ? here : total;
        if (l->part)
            l->room_bytes[room] = here;
    }
    total = place_passing(&house, total);
    for (int room = 0; room < rooms; room++) {
        uint64_t base = bottom_of(&house, room);
        for (size_t i = house.first[room]; i < house.first[room + 1]; i++)
            house.tenants[i]->offset += base;
    }
    house_finish(&house);
    return total;
}

/* Places buffers beside computation from the beginning of their side. Fills in the bytes of every
 * room and returns the most. */
static uint64_t stack_beside(struct program *p, uint64_t *tops)
{
    uint64_t most = 0;
    for (size_t i = 0; i < p->buffer_count; i++) {
        struct buffer *buffer = &p->buffers[i];
        if (!buffer->beside)
            continue;
        assert(buffer->room_first == buffer->room_last);
        buffer->offset = tops[buffer->room_first];
        tops[buffer->room_first] += arena_align(buffer->bytes);
        most = tops[buffer->room_first] > most ? tops[buffer->room_first] : most;
    }
    return most;
}

/* Puts the two sides behind the messages. Rooms that use them alternate: the first lies at the very
 * end, the second at the beginning, and so on. */
static void place_beside(struct lowering *l)
{
    struct program *p = l->program;
    uint64_t *rooms = xcalloc((size_t)l->room + 1, sizeof *rooms);
    p->beside_bytes = stack_beside(p, rooms);
    bool at_end = true;
    for (int room = 0; room <= l->room; room++) {
        uint64_t bytes = rooms[room];
        rooms[room] = p->bytes[REGION_COMMUNICATION] + (at_end ? 2 * p->beside_bytes - bytes : 0);
        at_end = at_end != (bytes > 0);
    }
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].beside)
            p->buffers[i].offset += rooms[p->buffers[i].room_first];
    p->bytes[REGION_COMMUNICATION] += 2 * p->beside_bytes;
    free(rooms);
}

void arena_layout(struct lowering *l)
{
    struct program *p = l->program;
    p->slot_bytes = stack(p, REGION_SAVED);
    p->bytes[REGION_STATE] = stack(p, REGION_STATE);
    p->bytes[REGION_SAVED] = p->slot_bytes * (uint64_t)p->slots;
    p->bytes[REGION_TRANSIENT] = pack_transients(l);
    p->bytes[REGION_COMMUNICATION] = stack(p, REGION_COMMUNICATION);
    place_beside(l);
}
