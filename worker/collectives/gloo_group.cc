/* gloo_group.cc - collectives as transfers of chunks and sums in the order of the members.
 *
 * Gloo's own all-reduce adds up in an order that depends on the algorithm it picks, and this
 * version has no reduce-scatter. Here both move the same bytes as a ring, and give the same bits
 * as local.
 *
 * A slot tells (group, call, sizes) apart, so that members that disagree about a call wait for
 * each other until the limit rather than read what was meant for another. */
#include "worker/collectives/gloo_group.h"

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
      parts(ranks.size())
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

void group::reduce(const float *own, float *destination, size_t count, enum reduction reduction)
{
    for (size_t i = 0; i < ranks.size(); i++)
        parts[i] = i == me ? own : scratch.get() + (i < me ? i : i - 1) * count;
    collective_reduce(destination, parts.data(), static_cast<int>(ranks.size()), count, reduction);
}

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
    reduce(data, data, count, reduction);
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
    reduce(data + mine.offset, data + mine.offset, mine.count, reduction);
    for (size_t i = 0; i < ranks.size(); i++)
        receive(i, GATHER_PART, mark, data + chunk(count, i).offset, chunk(count, i).count);
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, GATHER_PART, mark, data + mine.offset, mine.count);
    finish();
}

void group::reduce_scatter(const float *source, float *destination, const size_t *counts)
{
    float *others = scratch_for((ranks.size() - 1) * counts[me]);
    const float *own = source;
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, REDUCE_SCATTER, 0, others, counts[me]);
        others += i == me ? 0 : counts[me];
    }
    for (size_t i = 0; i < ranks.size(); i++) {
        send(i, REDUCE_SCATTER, 0, source, counts[i]);
        own = i == me ? source : own;
        source += counts[i];
    }
    finish();
    reduce(own, destination, counts[me], REDUCTION_SUM);
}

void group::all_gather(const float *source, float *destination, const size_t *counts)
{
    begin();
    for (size_t i = 0; i < ranks.size(); i++) {
        receive(i, ALL_GATHER, 0, destination, counts[i]);
        if (i == me && counts[i] > 0 && source != destination)
            std::memcpy(destination, source, counts[i] * sizeof *source);
        destination += counts[i];
    }
    for (size_t i = 0; i < ranks.size(); i++)
        send(i, ALL_GATHER, 0, source, counts[me]);
    finish();
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
