/* gloo.cc - collectives between processes, for host memory: Gloo behind a C interface, where
 * exceptions become an errno and words.
 *
 * Collectives are transfers of chunks, and sums in the order of the members. Gloo's own all-reduce
 * sums in an order that depends on the algorithm it picks, and this version has no reduce-scatter.
 * The ones here move the same number of bytes as a ring, and give the same bits as local.
 *
 * A slot identifies (group, call, sizes), so members that disagree about a call wait for each other
 * until the limit, instead of reading what was meant for another call. */
#include "worker/collectives/gloo_mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <new>

extern "C" {
#include "common/base/hash.h"
}
#include "worker/collectives/library.h"

namespace gimbal
{
namespace
{

enum call { REDUCE_ALL, REDUCE_PART, GATHER_PART, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, MESSAGE };

/* The name of a transfer on both ends, equal only if all of these are. */
uint64_t slot(uint64_t id, call call, enum element element, uint64_t mark, size_t count);

class group
{
  public:
    group(mesh &owner, const int *members, int size, int index, uint64_t identity);

    void all_reduce(enum element of, void *data, size_t count, enum reduction reduction);
    void reduce_scatter(enum element of, const collective_part *parts, int count);
    void all_gather(enum element of, const collective_part *parts, int count);
    void all_to_all(enum element of, const void *source, const size_t *sends, void *destination,
                    const size_t *receives);

    /* After a failure: cancel transfers, so that the caller may use its memory again. */
    void drop();

    mesh &world;
    std::string name; /* "{0,2,5}" */
    const std::vector<int> ranks;

  private:
    struct range {
        size_t offset, count;
    };

    void all_reduce_at_once(char *data, size_t count, size_t mark, enum reduction reduction);
    range chunk(size_t count, size_t index) const;
    size_t bytes(size_t count) const;
    char *copy(const void *source, size_t count, char *destination) const;
    char *scratch_for(size_t count);
    const char *source_of(const collective_part &part, size_t member) const;
    char *place_of(const collective_part &part, size_t member) const;
    void begin(enum element of);
    void receive(size_t member, call call, size_t mark, char *destination, size_t count);
    void send(size_t member, call call, size_t mark, const char *source, size_t count);
    void finish();
    void reduce(const char *own, const char *others, size_t stride, char *destination, size_t count,
                enum reduction reduction);

    const size_t me;
    const uint64_t id; /* the same on all members, and different from other groups' */
    std::vector<const void *> summands;
    std::unique_ptr<char[]> scratch; /* what others send to be reduced, and packed chunks */
    size_t scratch_bytes = 0;
    enum element element = ELEMENT_F32; /* of the current call */
    std::vector<transfer> under_way;
    deadline limit;
};

/* A sum in one round of messages, everything to everybody, saves a round, but moves more bytes than
 * one in two rounds, (n-1)(n-2)/n as many more, and every member computes all of it, which is (n-1)
 * times what it would have to read. It pays up to these. Over loopback, one round was the faster
 * one of 2 ranks up to 512 KiB (128 KiB: 0.15 ms instead of 0.3), of 3 up to 128 to 256, of 4 up to
 * 64; the first limit is tighter than that, for networks. */
constexpr size_t one_round_moved_max = 32 << 10, one_round_read_max = 512 << 10;

bool takes_one_round(size_t bytes, size_t ranks)
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
constexpr size_t packed_max = 16384;

bool is_packed(const collective_part &part, size_t member, int count)
{
    return count > 1 && part.counts[member] <= packed_max;
}

/* Number of elements of a member's chunks that travel together. */
size_t packed_count(const collective_part *parts, int count, size_t member)
{
    size_t total = 0;
    for (int p = 0; p < count; p++)
        total += is_packed(parts[p], member, count) ? parts[p].counts[member] : 0;
    return total;
}

size_t chunk_offset(const collective_part &part, size_t member)
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
constexpr size_t pack_mark = SIZE_MAX;

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

struct request {
    transfer message;
    uint32_t tag;
};

struct fabric {
    explicit fabric(const struct fabric_config &config) : world(config)
    {
    }

    mesh world;
    std::list<group> groups;
    std::mutex lock; /* for the requests, because threads may send concurrently */
    std::deque<request> requests;
    std::vector<request *> free_requests;
};

/* ---- the C interface ---- */

struct fabric *inside(::fabric *face)
{
    return reinterpret_cast<struct fabric *>(face);
}

group *inside(::fabric_group *face)
{
    return reinterpret_cast<group *>(face);
}

request *inside(::fabric_request *face)
{
    return reinterpret_cast<request *>(face);
}

/* Turn the exception that is being handled into an errno and words. */
int explain(struct error *err, const std::string &what)
{
    try {
        throw;
    } catch (const failure &cause) {
        return error_set(err, cause.rc, "%s: %s", what.c_str(), cause.what());
    } catch (const std::bad_alloc &) {
        return error_set(err, -ENOBUFS, "%s: no memory for its buffers", what.c_str());
    } catch (const std::exception &cause) {
        return error_set(err, -EIO, "%s: %s", what.c_str(), cause.what());
    }
}

int face_open(const struct fabric_config *config, ::fabric **out, struct error *err)
{
    if (!config->rendezvous)
        return error_set(err, -EINVAL, "gloo: a rendezvous is needed");
    if (config->rank < 0 || config->rank >= config->count)
        return error_set(err, -EINVAL, "gloo: rank %d of %d", config->rank, config->count);
    if (!(config->timeout_s > 0))
        return error_set(err, -EINVAL, "gloo: a limit of %g s: more than 0 is needed",
                         config->timeout_s);
    try {
        *out = reinterpret_cast<::fabric *>(new struct fabric(*config));
        return 0;
    } catch (...) {
        return explain(err, "gloo: rank " + std::to_string(config->rank));
    }
}

void face_close(::fabric *face)
{
    delete inside(face);
}

void face_abort(::fabric *face)
{
    inside(face)->world.abort();
}

/* Groups of the same ranks are told apart by the order in which their members create them. */
uint64_t group_id(const struct fabric *fabric, const int *ranks, int count)
{
    uint64_t id = hash_number(HASH_START, static_cast<uint64_t>(count));
    for (int i = 0; i < count; i++)
        id = hash_number(id, static_cast<uint64_t>(ranks[i]));
    uint64_t earlier = 0;
    for (const group &other : fabric->groups)
        earlier += other.ranks == std::vector<int>(ranks, ranks + count);
    return hash_number(id, earlier);
}

int face_group(::fabric *face, const int *ranks, int count, ::fabric_group **out, struct error *err)
{
    struct fabric *fabric = inside(face);
    int me;
    int rc =
        collective_members_check(ranks, count, fabric->world.rank, fabric->world.count, &me, err);
    if (rc < 0)
        return rc;
    try {
        fabric->groups.emplace_back(fabric->world, ranks, count, me,
                                    group_id(fabric, ranks, count));
        *out = reinterpret_cast<::fabric_group *>(&fabric->groups.back());
        return 0;
    } catch (...) {
        return explain(err, "a group of " + std::to_string(count) + " ranks");
    }
}

template <class body>
int group_call(const char *call, ::fabric_group *face, struct error *err, body run)
{
    group &group = *inside(face);
    try {
        run(group);
        return 0;
    } catch (...) {
        group.drop();
        return explain(err, std::string(call) + " in group " + group.name);
    }
}

int face_all_reduce(::fabric_group *face, enum element element, void *data, size_t count,
                    enum reduction reduction, struct error *err)
{
    return group_call("all_reduce", face, err,
                      [=](group &group) { group.all_reduce(element, data, count, reduction); });
}

int face_reduce_scatter(::fabric_group *face, enum element element,
                        const struct collective_part *parts, int count, struct error *err)
{
    return group_call("reduce_scatter", face, err,
                      [=](group &group) { group.reduce_scatter(element, parts, count); });
}

int face_all_gather(::fabric_group *face, enum element element, const struct collective_part *parts,
                    int count, struct error *err)
{
    return group_call("all_gather", face, err,
                      [=](group &group) { group.all_gather(element, parts, count); });
}

int face_all_to_all(::fabric_group *face, enum element element, const void *source,
                    const size_t *sends, void *destination, const size_t *receives,
                    struct error *err)
{
    return group_call("all_to_all", face, err, [=](group &group) {
        group.all_to_all(element, source, sends, destination, receives);
    });
}

/* ---- messages ---- */

std::string message_name(const char *call, int peer, uint32_t tag)
{
    return std::string(call) + std::to_string(peer) + ", tag " + std::to_string(tag);
}

uint64_t message_slot(uint32_t tag, enum element element, size_t count)
{
    return slot(HASH_START, MESSAGE, element, tag, count);
}

request *request_take(struct fabric *fabric)
{
    std::lock_guard<std::mutex> guard(fabric->lock);
    if (fabric->free_requests.empty()) {
        fabric->requests.emplace_back();
        return &fabric->requests.back();
    }
    request *request = fabric->free_requests.back();
    fabric->free_requests.pop_back();
    return request;
}

void request_release(struct fabric *fabric, request *request)
{
    request->message.buffer.reset();
    std::lock_guard<std::mutex> guard(fabric->lock);
    fabric->free_requests.push_back(request);
}

int face_send(::fabric *face, int peer, uint32_t tag, enum element element, const void *source,
              size_t count, ::fabric_request **out, struct error *err)
{
    struct fabric *fabric = inside(face);
    int rc = collective_peer_check("send", peer, fabric->world.rank, fabric->world.count, err);
    if (rc < 0)
        return rc;
    request *request = nullptr;
    try {
        request = request_take(fabric);
        request->tag = tag;
        request->message = fabric->world.send(peer, message_slot(tag, element, count), source,
                                              count * element_size(element));
        fabric->world.start(&request->message, 1);
        *out = reinterpret_cast<::fabric_request *>(request);
        return 0;
    } catch (...) {
        if (request)
            request_release(fabric, request);
        return explain(err, message_name("send to rank ", peer, tag));
    }
}

int face_wait(::fabric *face, ::fabric_request *which, struct error *err)
{
    struct fabric *fabric = inside(face);
    request *request = inside(which);
    int rc = 0;
    try {
        fabric->world.await(request->message, fabric->world.limit());
    } catch (...) {
        rc = explain(err, message_name("send to rank ", request->message.peer, request->tag));
    }
    request_release(fabric, request);
    return rc;
}

int face_receive(::fabric *face, int peer, uint32_t tag, enum element element, void *destination,
                 size_t count, struct error *err)
{
    struct fabric *fabric = inside(face);
    int rc = collective_peer_check("receive", peer, fabric->world.rank, fabric->world.count, err);
    if (rc < 0)
        return rc;
    try {
        deadline limit = fabric->world.limit();
        transfer message = fabric->world.receive(peer, message_slot(tag, element, count),
                                                 destination, count * element_size(element));
        fabric->world.start(&message, 1);
        fabric->world.await(message, limit);
        return 0;
    } catch (...) {
        return explain(err, message_name("receive from rank ", peer, tag));
    }
}

} // namespace
} // namespace gimbal

extern "C" const struct collectives collectives_gloo = {
    "gloo",
    false, /* in_streams */
    gimbal::face_open,
    gimbal::face_close,
    gimbal::face_abort,
    gimbal::face_group,
    nullptr, /* acquaint */
    nullptr, /* channel */
    gimbal::face_all_reduce,
    gimbal::face_reduce_scatter,
    gimbal::face_all_gather,
    gimbal::face_all_to_all,
    gimbal::face_send,
    gimbal::face_wait,
    gimbal::face_receive,
    nullptr, /* check: what has returned is done */
    nullptr, /* sent: not counted between processes */
};
