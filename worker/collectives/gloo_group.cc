/* gloo_group.cc - collectives as transfers of chunks, and sums in the order of the members.
 *
 * Gloo's own all-reduce sums in an order that depends on the algorithm it picks, and this version
 * has no reduce-scatter. The ones here move the same number of bytes as a ring, and give the same
 * bits as local.
 *
 * A slot identifies (group, call, sizes), so members that disagree about a call wait for each other
 * until the limit, instead of reading what was meant for another call. */
#include "worker/collectives/gloo_group.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "common/base/hash.h"
}
#include "worker/collectives/members.h"
#include "worker/collectives/reduce.h"

namespace gimbal
{

/* A sum in one round of messages, everything to everybody, saves a round, but moves more bytes than
 * one in two rounds, (n-1)(n-2)/n as many more, and every member computes all of it, which is (n-1)
 * times what it would have to read. It pays up to these. Over loopback, one round was the faster
 * one of 2 ranks up to 512 KiB (128 KiB: 0.15 ms instead of 0.3), of 3 up to 128 to 256, of 4 up to
 * 64; the first limit is tighter than that, for networks. */
static constexpr size_t one_round_moved_max = 32 << 10, one_round_read_max = 512 << 10;

static bool takes_one_round(size_t bytes, size_t ranks)
{
    return bytes * (ranks - 1) * (ranks - 2) / ranks <= one_round_moved_max &&
           bytes * (ranks - 1) <= one_round_read_max;
}

group::group(mesh &owner, const int *members, int size, int index, uint64_t identity)
    : world(owner), ranks(members, members + size), me(static_cast<size_t>(index)), id(identity),
      summands(ranks.size())
{
    char *text = collective_members_print(members, size);
    name = text;
    free(text);
    under_way.reserve(2 * ranks.size());
}

uint64_t slot(uint64_t id, call call, enum element element, uint64_t mark, size_t count)
{
    uint64_t hash = hash_number(id, static_cast<uint64_t>(call) * ELEMENTS + element);
    return hash_number(hash_number(hash, mark), count);
}

group::range group::chunk(size_t count, size_t index) const
{
    size_t low, high;
    collective_chunk(count, static_cast<int>(ranks.size()), static_cast<int>(index), &low, &high);
    return {low, high - low};
}

size_t group::bytes(size_t count) const
{
    return count * element_size(element);
}

/* Copy, and return the end of the destination. */
char *group::copy(const void *source, size_t count, char *destination) const
{
    if (count > 0)
        std::memcpy(destination, source, bytes(count));
    return destination + bytes(count);
}

char *group::scratch_for(size_t count)
{
    if (scratch_bytes < bytes(count)) {
        scratch.reset(new char[bytes(count)]);
        scratch_bytes = bytes(count);
    }
    return scratch.get();
}

void group::begin(enum element of)
{
    element = of;
    under_way.clear();
    limit = world.limit();
}

void group::receive(size_t member, call call, size_t mark, char *destination, size_t count)
{
    if (member != me && count > 0)
        under_way.push_back(world.receive(ranks[member], slot(id, call, element, mark, count),
                                          destination, bytes(count)));
}

void group::send(size_t member, call call, size_t mark, const char *source, size_t count)
{
    if (member != me && count > 0)
        under_way.push_back(
            world.send(ranks[member], slot(id, call, element, mark, count), source, bytes(count)));
}

void group::finish()
{
    world.start(under_way.data(), under_way.size());
    for (const transfer &each : under_way)
        world.await(each, limit);
    under_way.clear();
}

void group::drop()
{
    under_way.clear();
}

/* Reduce the members' summands in order; those of the others lie one after another, `stride`
 * elements apart. */
void group::reduce(const char *own, const char *others, size_t stride, char *destination,
                   size_t count, enum reduction reduction)
{
    for (size_t i = 0; i < ranks.size(); i++)
        summands[i] = i == me ? own : others + bytes((i < me ? i : i - 1) * stride);
    collective_reduce(element, destination, summands.data(), static_cast<int>(ranks.size()), count,
                      reduction);
}

/* ---- several tensors in one call ---- */

/* Up to this many elements, a chunk travels together with others of its call: copying it twice
 * costs less than a message of its own. Eight chunks of 16384 elements of each of 2 ranks take
 * 0.4 ms packed and 0.7 ms apart; with 32768, there is no difference. */
static constexpr size_t packed_max = 16384;

static bool is_packed(const collective_part &part, size_t member, int count)
{
    return count > 1 && part.counts[member] <= packed_max;
}

/* Number of elements of a member's chunks that travel together. */
static size_t packed_count(const collective_part *parts, int count, size_t member)
{
    size_t total = 0;
    for (int p = 0; p < count; p++)
        total += is_packed(parts[p], member, count) ? parts[p].counts[member] : 0;
    return total;
}

static size_t chunk_offset(const collective_part &part, size_t member)
{
    size_t offset = 0;
    for (size_t i = 0; i < member; i++)
        offset += part.counts[i];
    return offset;
}

/* Where a member's chunk begins. */
const char *group::source_of(const collective_part &part, size_t member) const
{
    return static_cast<const char *>(part.source) + bytes(chunk_offset(part, member));
}

char *group::place_of(const collective_part &part, size_t member) const
{
    return static_cast<char *>(part.destination) + bytes(chunk_offset(part, member));
}

/* Marks the packed message; others have the index of their part. */
static constexpr size_t pack_mark = SIZE_MAX;

/* ---- collectives ---- */

/* Everybody sends everything to everybody and reduces alone: one round of messages instead of two,
 * with the same bits. */
void group::all_reduce_at_once(char *data, size_t count, size_t mark, enum reduction reduction)
{
    char *others = scratch_for((ranks.size() - 1) * count);
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, REDUCE_ALL, mark, others, count);
        others += i == me ? 0 : bytes(count);
    }
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, REDUCE_ALL, mark, data, count);
    finish();
    reduce(data, scratch.get(), count, data, count, reduction);
}

void group::all_reduce(enum element of, void *whole, size_t count, enum reduction reduction)
{
    size_t mark = 2 * count + (reduction == REDUCTION_MAX);
    char *data = static_cast<char *>(whole);
    begin(of);
    if (takes_one_round(bytes(count), ranks.size()))
        return all_reduce_at_once(data, count, mark, reduction);
    range mine = chunk(count, me);
    char *others = scratch_for((ranks.size() - 1) * mine.count), *own = data + bytes(mine.offset);
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, REDUCE_PART, mark, others, mine.count);
        others += i == me ? 0 : bytes(mine.count);
    }
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, REDUCE_PART, mark, data + bytes(chunk(count, i).offset), chunk(count, i).count);
    finish();
    reduce(own, scratch.get(), mine.count, own, mine.count, reduction);
    for (size_t i = 0; i < ranks.size(); i++)
        receive(i, GATHER_PART, mark, data + bytes(chunk(count, i).offset), chunk(count, i).count);
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, GATHER_PART, mark, own, mine.count);
    finish();
}

/* Every other member sends all its summands for this member's chunks: the packed ones first. */
void group::reduce_scatter(enum element of, const collective_part *parts, int count)
{
    begin(of);
    size_t packed = packed_count(parts, count, me), stride = 0, leaving = 0;
    for (int p = 0; p < count; p++)
        stride += parts[p].counts[me];
    for (size_t i = 0; i < ranks.size(); i++)
        leaving += i == me ? 0 : packed_count(parts, count, i);
    char *others = scratch_for((ranks.size() - 1) * stride + leaving), *at = others;
    for (size_t i = 0; i < ranks.size(); i++) {
        char *place = at + bytes(packed);
        receive(i, REDUCE_SCATTER, pack_mark, at, packed);
        for (int p = 0; p < count; p++) {
            if (is_packed(parts[p], me, count))
                continue;
            receive(i, REDUCE_SCATTER, static_cast<size_t>(p), place, parts[p].counts[me]);
            place += bytes(parts[p].counts[me]);
        }
        at += i == me ? 0 : bytes(stride);
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        char *pack = at;
        for (int p = 0; p < count && i != me; p++) {
            const char *chunk = source_of(parts[p], i);
            if (is_packed(parts[p], i, count))
                at = copy(chunk, parts[p].counts[i], at);
            else
                send(i, REDUCE_SCATTER, static_cast<size_t>(p), chunk, parts[p].counts[i]);
        }
        send(i, REDUCE_SCATTER, pack_mark, pack,
             static_cast<size_t>(at - pack) / element_size(element));
    }
    finish();
    const char *small = others, *large = others + bytes(packed);
    for (int p = 0; p < count; p++) {
        const char *&from = is_packed(parts[p], me, count) ? small : large;
        reduce(source_of(parts[p], me), from, stride, static_cast<char *>(parts[p].destination),
               parts[p].counts[me], REDUCTION_SUM);
        from += bytes(parts[p].counts[me]);
    }
}

void group::all_gather(enum element of, const collective_part *parts, int count)
{
    begin(of);
    size_t own = packed_count(parts, count, me), coming = 0;
    for (size_t i = 0; i < ranks.size(); i++)
        coming += i == me ? 0 : packed_count(parts, count, i);
    char *pack = scratch_for(own + coming), *at = pack;
    for (int p = 0; p < count; p++) {
        char *place = place_of(parts[p], me);
        if (is_packed(parts[p], me, count))
            at = copy(parts[p].source, parts[p].counts[me], at);
        if (parts[p].source != place)
            copy(parts[p].source, parts[p].counts[me], place);
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        for (int p = 0; p < count; p++)
            if (!is_packed(parts[p], i, count))
                receive(i, ALL_GATHER, static_cast<size_t>(p), place_of(parts[p], i),
                        parts[p].counts[i]);
        receive(i, ALL_GATHER, pack_mark, at, i == me ? 0 : packed_count(parts, count, i));
        at += i == me ? 0 : bytes(packed_count(parts, count, i));
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        for (int p = 0; p < count; p++)
            if (!is_packed(parts[p], me, count))
                send(i, ALL_GATHER, static_cast<size_t>(p),
                     static_cast<const char *>(parts[p].source), parts[p].counts[me]);
        send(i, ALL_GATHER, pack_mark, pack, own);
    }
    finish();
    at = pack + bytes(own);
    for (size_t i = 0; i < ranks.size(); i++)
        for (int p = 0; p < count && i != me; p++)
            if (is_packed(parts[p], i, count)) {
                copy(at, parts[p].counts[i], place_of(parts[p], i));
                at += bytes(parts[p].counts[i]);
            }
}

void group::all_to_all(enum element of, const void *out, const size_t *sends, void *in,
                       const size_t *receives)
{
    const char *source = static_cast<const char *>(out);
    char *destination = static_cast<char *>(in), *own = destination;
    begin(of);
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, ALL_TO_ALL, 0, destination, receives[i]);
        own = i == me ? destination : own;
        destination += bytes(receives[i]);
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        send(i, ALL_TO_ALL, 0, source, sends[i]);
        if (i == me)
            copy(source, sends[i], own);
        source += bytes(sends[i]);
    }
    finish();
}

} // namespace gimbal
