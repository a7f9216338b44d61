/* gloo.cc - collectives between processes, for host memory: Gloo behind a C interface, where
 * exceptions become an errno and words. */
#include "worker/collectives/gloo_group.h"

#include <cerrno>
#include <deque>
#include <list>
#include <new>

extern "C" {
#include "common/base/hash.h"
}
#include "worker/collectives/members.h"

namespace gimbal
{
namespace
{

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
    false, /* in_lanes */
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
