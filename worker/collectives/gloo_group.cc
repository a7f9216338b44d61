/* gloo_group.cc - collectives as transfers of chunks and sums in the order of the members.
 *
 * Gloo's own all-reduce adds up in an order that depends on the algorithm it picks, and this
 * version has no reduce-scatter. Here both move the same bytes as a ring, and give the same bits
 * as local.
 *
 * A slot tells (group, call, sizes) apart, so that members that disagree about a call wait for
 * each other until the limit rather than read what was meant for another. */
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

/* Elements up to which a second round of messages costs more than sending everything to everybody:
 * over loopback, the sum of 16 elements over 2 ranks takes 125 us in one round and 270 us in two.
 */
static constexpr size_t small = 1024;

group::group(mesh &owner, const int *members, int size, int index, uint64_t identity)
    : world(owner), ranks(members, members + size), me(static_cast<size_t>(index)), id(identity),
      summands(ranks.size())
{
    char *text = collective_members_print(members, size);
    name = text;
    free(text);
    under_way.reserve(2 * ranks.size());
}

uint64_t slot(uint64_t id, call call, uint64_t mark, size_t count)
{
    uint64_t hash = hash_number(id, static_cast<uint64_t>(call));
    return hash_number(hash_number(hash, mark), count);
}

group::range group::chunk(size_t count, size_t index) const
{
    size_t low, high;
    collective_chunk(count, static_cast<int>(ranks.size()), static_cast<int>(index), &low, &high);
    return {low, high - low};
}

float *group::scratch_for(size_t count)
{
    if (scratch_count < count) {
        scratch.reset(new float[count]);
        scratch_count = count;
    }
    return scratch.get();
}

void group::begin()
{
    under_way.clear();
    limit = world.limit();
}

void group::receive(size_t member, call call, size_t mark, float *destination, size_t count)
{
    if (member != me && count > 0)
        under_way.push_back(
            world.receive(ranks[member], slot(id, call, mark, count), destination, count));
}

void group::send(size_t member, call call, size_t mark, const float *source, size_t count)
{
    if (member != me && count > 0)
        under_way.push_back(world.send(ranks[member], slot(id, call, mark, count), source, count));
}

void group::finish()
{
    for (const transfer &each : under_way)
        world.await(each, limit);
    under_way.clear();
}

void group::drop()
{
    under_way.clear();
}

/* The others' summands lie in the order of the members, each a stride behind the one before. */
void group::reduce(const float *own, const float *others, size_t stride, float *destination,
                   size_t count, enum reduction reduction)
{
    for (size_t i = 0; i < ranks.size(); i++)
        summands[i] = i == me ? own : others + (i < me ? i : i - 1) * stride;
    collective_reduce(destination, summands.data(), static_cast<int>(ranks.size()), count,
                      reduction);
}

/* ---- several tensors in one call ---- */

/* Elements up to which a chunk travels with the others of its call: copying it twice costs less
 * than a message of its own. */
static constexpr size_t packed_max = 8192;

static bool is_packed(const collective_part &part, size_t member, int count)
{
    return count > 1 && part.counts[member] <= packed_max;
}

/* Elements of the member's chunks that travel together. */
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

static constexpr size_t pack_mark = SIZE_MAX; /* other messages of a call have their part's index */

/* ---- collectives ---- */

/* Everybody sends everything to everybody and adds up alone: one round of messages instead of
 * two, for (n-1) instead of 2(n-1)/n times the bytes, and the same bits. */
void group::all_reduce_small(float *data, size_t count, size_t mark, enum reduction reduction)
{
    float *others = scratch_for((ranks.size() - 1) * count);
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, REDUCE_ALL, mark, others, count);
        others += i == me ? 0 : count;
    }
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, REDUCE_ALL, mark, data, count);
    finish();
    reduce(data, scratch.get(), count, data, count, reduction);
}

void group::all_reduce(float *data, size_t count, enum reduction reduction)
{
    size_t mark = 2 * count + (reduction == REDUCTION_MAX);
    if (count <= small)
        return all_reduce_small(data, count, mark, reduction);
    range mine = chunk(count, me);
    float *others = scratch_for((ranks.size() - 1) * mine.count);
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, REDUCE_PART, mark, others, mine.count);
        others += i == me ? 0 : mine.count;
    }
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, REDUCE_PART, mark, data + chunk(count, i).offset, chunk(count, i).count);
    finish();
    reduce(data + mine.offset, scratch.get(), mine.count, data + mine.offset, mine.count,
           reduction);
    for (size_t i = 0; i < ranks.size(); i++)
        receive(i, GATHER_PART, mark, data + chunk(count, i).offset, chunk(count, i).count);
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, GATHER_PART, mark, data + mine.offset, mine.count);
    finish();
}

/* Of every other member all its summands of this one's chunks: the packed ones, then the others. */
void group::reduce_scatter(const collective_part *parts, int count)
{
    size_t packed = packed_count(parts, count, me), stride = 0, leaving = 0;
    for (int p = 0; p < count; p++)
        stride += parts[p].counts[me];
    for (size_t i = 0; i < ranks.size(); i++)
        leaving += i == me ? 0 : packed_count(parts, count, i);
    float *others = scratch_for((ranks.size() - 1) * stride + leaving), *at = others;
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        float *place = at + packed;
        receive(i, REDUCE_SCATTER, pack_mark, at, packed);
        for (int p = 0; p < count; p++) {
            if (is_packed(parts[p], me, count))
                continue;
            receive(i, REDUCE_SCATTER, static_cast<size_t>(p), place, parts[p].counts[me]);
            place += parts[p].counts[me];
        }
        at += i == me ? 0 : stride;
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        float *pack = at;
        for (int p = 0; p < count && i != me; p++) {
            const float *chunk = parts[p].source + chunk_offset(parts[p], i);
            if (is_packed(parts[p], i, count))
                at = std::copy_n(chunk, parts[p].counts[i], at);
            else
                send(i, REDUCE_SCATTER, static_cast<size_t>(p), chunk, parts[p].counts[i]);
        }
        send(i, REDUCE_SCATTER, pack_mark, pack, static_cast<size_t>(at - pack));
    }
    finish();
    const float *small = others, *large = others + packed;
    for (int p = 0; p < count; p++) {
        const float *&from = is_packed(parts[p], me, count) ? small : large;
        reduce(parts[p].source + chunk_offset(parts[p], me), from, stride, parts[p].destination,
               parts[p].counts[me], REDUCTION_SUM);
        from += parts[p].counts[me];
    }
}

void group::all_gather(const collective_part *parts, int count)
{
    size_t own = packed_count(parts, count, me), coming = 0;
    for (size_t i = 0; i < ranks.size(); i++)
        coming += i == me ? 0 : packed_count(parts, count, i);
    float *pack = scratch_for(own + coming), *at = pack;
    for (int p = 0; p < count; p++) {
        float *place = parts[p].destination + chunk_offset(parts[p], me);
        if (is_packed(parts[p], me, count))
            at = std::copy_n(parts[p].source, parts[p].counts[me], at);
        if (parts[p].counts[me] > 0 && parts[p].source != place)
            std::copy_n(parts[p].source, parts[p].counts[me], place);
    }
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        for (int p = 0; p < count; p++)
            if (!is_packed(parts[p], i, count))
                receive(i, ALL_GATHER, static_cast<size_t>(p),
                        parts[p].destination + chunk_offset(parts[p], i), parts[p].counts[i]);
        receive(i, ALL_GATHER, pack_mark, at, i == me ? 0 : packed_count(parts, count, i));
        at += i == me ? 0 : packed_count(parts, count, i);
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        for (int p = 0; p < count; p++)
            if (!is_packed(parts[p], me, count))
                send(i, ALL_GATHER, static_cast<size_t>(p), parts[p].source, parts[p].counts[me]);
        send(i, ALL_GATHER, pack_mark, pack, own);
    }
    finish();
    at = pack + own;
    for (size_t i = 0; i < ranks.size(); i++)
        for (int p = 0; p < count && i != me; p++)
            if (is_packed(parts[p], i, count)) {
                std::copy_n(at, parts[p].counts[i],
                            parts[p].destination + chunk_offset(parts[p], i));
                at += parts[p].counts[i];
            }
}

void group::all_to_all(const float *source, const size_t *sends, float *destination,
                       const size_t *receives)
{
    float *own = destination;
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, ALL_TO_ALL, 0, destination, receives[i]);
        own = i == me ? destination : own;
        destination += receives[i];
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        send(i, ALL_TO_ALL, 0, source, sends[i]);
        if (i == me && sends[i] > 0)
            std::memcpy(own, source, sends[i] * sizeof *source);
        source += sends[i];
    }
    finish();
}

} // namespace gimbal
