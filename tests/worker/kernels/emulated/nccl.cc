/* nccl.cc - members meet in a hub, exchange by copying, and part. */
#include "tests/worker/kernels/emulated/nccl.h"

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, SEND, RECEIVE };

struct operation {
    enum kind kind;
    const float *source;
    float *destination;
    size_t count;
    ncclRedOp_t reduction;
    int peer; /* or root */
};

/* What all members do at the same place of their order. */
struct round {
    std::map<int, operation> members;
    bool done;
};

struct mail {
    operation sent;
    bool done;
};

struct hub {
    int count, joined;
    bool aborted;
    std::map<uint64_t, std::shared_ptr<round>> rounds;
    std::map<int, uint64_t> begun; /* rounds, by member */
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<mail>>> mails;
};

std::map<std::string, std::shared_ptr<hub>> hubs; /* by unique id */

[[noreturn]] void die(const char *words)
{
    fprintf(stderr, "emulated NCCL: %s\n", words);
    abort();
}

float reduce(const round &all, size_t at, ncclRedOp_t reduction)
{
    float value = all.members.begin()->second.source[at];
    for (auto member = std::next(all.members.begin()); member != all.members.end(); member++) {
        float other = member->second.source[at];
        value = reduction == ncclSum ? value + other : other > value ? other : value;
    }
    return value;
}

/* What every member is to have, one after the other. */
std::vector<float> compute(const round &all)
{
    const operation &first = all.members.begin()->second;
    std::vector<float> result;
    size_t reduced = first.kind == REDUCE_SCATTER ? first.count * all.members.size() : first.count;
    if (first.kind == BROADCAST)
        result.assign(all.members.at(first.peer).source,
                      all.members.at(first.peer).source + first.count);
    else if (first.kind == ALL_GATHER)
        for (const auto &member : all.members)
            result.insert(result.end(), member.second.source, member.second.source + first.count);
    else
        for (size_t i = 0; i < reduced; i++)
            result.push_back(reduce(all, i, first.reduction));
    return result;
}

void perform(round &all)
{
    const operation first = all.members.begin()->second;
    for (const auto &member : all.members)
        if (member.second.kind != first.kind || member.second.count != first.count ||
            member.second.peer != first.peer)
            die("members of a communicator call different things at the same place");
    std::vector<float> result = compute(all);
    for (const auto &member : all.members) {
        const float *own = result.data();
        size_t count = result.size();
        if (first.kind == REDUCE && member.first != first.peer)
            continue;
        if (first.kind == REDUCE_SCATTER) {
            own += first.count * (size_t)member.first;
            count = first.count;
        }
        memcpy(member.second.destination, own, count * sizeof *own);
    }
    all.done = true;
}

/* What one call of a member still waits for. */
struct call {
    std::shared_ptr<hub> where;
    int rank;
    std::vector<operation> operations;
    std::vector<std::shared_ptr<round>> rounds;
    std::vector<std::shared_ptr<mail>> sent;
    std::deque<operation> receives;

    void begin()
    {
        for (const operation &operation : operations) {
            if (operation.kind == SEND) {
                sent.push_back(std::make_shared<mail>(mail{operation, false}));
                where->mails[{rank, operation.peer}].push_back(sent.back());
            } else if (operation.kind == RECEIVE) {
                receives.push_back(operation);
            } else {
                std::shared_ptr<round> &here = where->rounds[where->begun[rank]++];
                if (!here)
                    here = std::make_shared<round>();
                here->members[rank] = operation;
                rounds.push_back(here);
                if ((int)here->members.size() == where->count)
                    perform(*here);
            }
        }
    }

    bool receive(const operation &operation)
    {
        auto &box = where->mails[{operation.peer, rank}];
        if (box.empty())
            return false;
        if (box.front()->sent.count != operation.count)
            die("a message is of another length than is expected");
        memcpy(operation.destination, box.front()->sent.source,
               operation.count * sizeof *operation.destination);
        box.front()->done = true;
        box.pop_front();
        emulated_notify();
        return true;
    }

    bool ended()
    {
        for (size_t left = receives.size(); left > 0; left--) {
            if (!receive(receives.front()))
                receives.push_back(receives.front());
            receives.pop_front();
        }
        bool done = receives.empty();
        for (const auto &round : rounds)
            done = done && round->done;
        for (const auto &mail : sent)
            done = done && mail->done;
        return done || where->aborted;
    }
};

} // namespace

struct ncclComm {
    std::shared_ptr<hub> where;
    int rank;
};

namespace
{

thread_local ncclComm_t grouped;
thread_local cudaStream_t grouped_stream;
thread_local std::vector<operation> group;

ncclResult_t add(const operation &operation, ncclComm_t comm, cudaStream_t stream)
{
    if (!group.empty() && (grouped != comm || grouped_stream != stream))
        die("a grouped call is of several communicators");
    grouped = comm;
    grouped_stream = stream;
    group.push_back(operation);
    return ncclSuccess;
}

} // namespace

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "an error of the emulated NCCL";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int number;
    emulated_change([&] { snprintf(id->internal, sizeof id->internal, "%d", ++number); });
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    emulated_change([&] {
        std::shared_ptr<hub> &where = hubs[id.internal];
        if (!where)
            where = std::make_shared<hub>();
        where->count = count;
        where->joined++;
        *comm = new ncclComm{where, rank};
    });
    if (config->blocking)
        die("joining would block");
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    emulated_change([&] {
        *state = comm->where->aborted                       ? ncclRemoteError
                 : comm->where->joined < comm->where->count ? ncclInProgress
                                                            : ncclSuccess;
    });
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    emulated_change([&] { comm->where->aborted = true; });
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.empty())
        return ncclSuccess;
    bool sends = true;
    for (const operation &operation : group)
        sends = sends && operation.kind == SEND;
    auto all = std::make_shared<call>(call{grouped->where, grouped->rank, group, {}, {}, {}});
    group.clear();
    emulated_issue(grouped_stream, [all] {
        all->begin();
        emulated_notify();
        emulated_await([&] { return all->ended(); });
    });
    if (sends)
        emulated_hasten(grouped_stream);
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *source, void *destination, size_t count, ncclDataType_t,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    return add({ALL_REDUCE, (const float *)source, (float *)destination, count, reduction, 0}, comm,
               stream);
}

ncclResult_t ncclReduce(const void *source, void *destination, size_t count, ncclDataType_t,
                        ncclRedOp_t reduction, int root, ncclComm_t comm, cudaStream_t stream)
{
    return add({REDUCE, (const float *)source, (float *)destination, count, reduction, root}, comm,
               stream);
}

ncclResult_t ncclBroadcast(const void *source, void *destination, size_t count, ncclDataType_t,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return add({BROADCAST, (const float *)source, (float *)destination, count, ncclSum, root}, comm,
               stream);
}

ncclResult_t ncclReduceScatter(const void *source, void *destination, size_t count, ncclDataType_t,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    return add({REDUCE_SCATTER, (const float *)source, (float *)destination, count, reduction, 0},
               comm, stream);
}

ncclResult_t ncclAllGather(const void *source, void *destination, size_t count, ncclDataType_t,
                           ncclComm_t comm, cudaStream_t stream)
{
    return add({ALL_GATHER, (const float *)source, (float *)destination, count, ncclSum, 0}, comm,
               stream);
}

ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add({SEND, (const float *)source, nullptr, count, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void *destination, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add({RECEIVE, nullptr, (float *)destination, count, ncclSum, peer}, comm, stream);
}
