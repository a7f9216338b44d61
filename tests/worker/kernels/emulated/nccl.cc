/* nccl.cc - NCCL's functions. The operations of a group form one call, which is work in a stream
 * that ends when the call has ended. */
#include "tests/worker/kernels/emulated/hub.h"

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <functional>
#include <string>

#define LOOKS 2 /* at a call that is not issued yet */

/* A call on a nonblocking communicator is issued a while later, once its members are connected. */
struct ncclComm {
    std::shared_ptr<hub> where;
    int rank;
    std::shared_ptr<hub_call> call;
    std::function<void()> pending;
    int looks; /* until it is issued */
    int device;
};

namespace
{

std::map<std::string, std::shared_ptr<hub>> hubs; /* by unique id */

thread_local int depth;
thread_local ncclComm_t grouped;
thread_local cudaStream_t grouped_stream;
thread_local std::vector<hub_operation> group;
thread_local std::vector<ncclComm_t> aborted; /* in this group */

/* What is sent and received is the device's; whoever is no root of a reduction receives nothing. */
bool is_there(const hub_operation &operation, const ncclComm &comm)
{
    size_t bytes = operation.count * (operation.type == ncclBfloat16 ? 2 : 4);
    size_t all = bytes * (size_t)comm.where->count;
    bool nothing = operation.kind == HUB_REDUCE && operation.peer != comm.rank;
    return (operation.kind == HUB_RECEIVE ||
            emulated_has(operation.source, operation.kind == HUB_REDUCE_SCATTER ? all : bytes)) &&
           (operation.kind == HUB_SEND || nothing ||
            emulated_has(operation.destination, operation.kind == HUB_ALL_GATHER ? all : bytes));
}

/* Of communicators that do not block, what the real one may say of any call. */
ncclResult_t add(const hub_operation &operation, ncclComm_t comm, cudaStream_t stream)
{
    if (!group.empty() && (grouped != comm || grouped_stream != stream))
        hub_die("a grouped call is of several communicators");
    if (emulated_device(stream) != comm->device)
        hub_die("a call is issued to a stream of another device than its communicator's");
    if (!is_there(operation, *comm))
        hub_die("a call names memory that is not the device's");
    grouped = comm;
    grouped_stream = stream;
    group.push_back(operation);
    return ncclInProgress;
}

} // namespace

ncclResult_t emulated_refusal;
int emulated_refused_device = -1;

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "an error of the emulated NCCL";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "nothing more is known";
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
    int device = 0;
    cudaGetDevice(&device);
    emulated_change([&] {
        std::shared_ptr<hub> &where = hubs[id.internal];
        if (!where)
            where = std::make_shared<hub>();
        where->count = count;
        where->joined++;
        *comm = new ncclComm{where, rank, {}, {}, 0, device};
    });
    if (config->blocking)
        hub_die("joining would block");
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    bool over = false, connected = true;
    if (comm->device == __atomic_load_n(&emulated_refused_device, __ATOMIC_SEQ_CST))
        return emulated_refusal;
    emulated_change([&] {
        over = comm->where->is_over(comm->rank);
        connected = !comm->pending || comm->call->connected();
    });
    if (comm->pending && !over && (!connected || comm->looks-- > 0)) {
        *state = ncclInProgress;
        return ncclSuccess;
    }
    if (comm->pending && !over)
        comm->pending();
    comm->pending = {};
    emulated_change([&] {
        *state = comm->where->is_over(comm->rank)           ? ncclRemoteError
                 : comm->where->joined < comm->where->count ? ncclInProgress
                                                            : ncclSuccess;
    });
    return ncclSuccess;
}

/* It waits for the device, where kernels of others may wait for what never comes. Both ends of a
 * communicator wait for the members on the same machine, as the real library may. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (depth == 0)
        hub_die("communicators are not aborted together");
    emulated_change([&] { comm->where->aborted.insert(comm->rank); });
    aborted.push_back(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    emulated_change([&] { comm->where->leave(); });
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    depth--;
    for (ncclComm_t comm : aborted)
        ncclCommDestroy(comm);
    aborted.clear();
    if (group.empty())
        return ncclSuccess;
    bool sends = true;
    for (const hub_operation &operation : group)
        sends = sends && operation.kind == HUB_SEND;
    auto all =
        std::make_shared<hub_call>(hub_call{grouped->where, grouped->rank, group, {}, {}, {}});
    group.clear();
    cudaStream_t stream = grouped_stream;
    emulated_change([&] { all->reach(); });
    grouped->looks = LOOKS;
    grouped->call = all;
    grouped->pending = [all, stream, sends] {
        emulated_issue(stream, [all] {
            all->begin();
            emulated_notify();
            emulated_await([&] { return all->ended(); });
        });
        if (sends)
            emulated_hasten(stream);
    };
    return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *source, void *destination, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_ALL_REDUCE, source, destination, count, type, reduction, 0}, comm, stream);
}

ncclResult_t ncclReduce(const void *source, void *destination, size_t count, ncclDataType_t type,
                        ncclRedOp_t reduction, int root, ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_REDUCE, source, destination, count, type, reduction, root}, comm, stream);
}

ncclResult_t ncclBroadcast(const void *source, void *destination, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_BROADCAST, source, destination, count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *source, void *destination, size_t count,
                               ncclDataType_t type, ncclRedOp_t reduction, ncclComm_t comm,
                               cudaStream_t stream)
{
    return add({HUB_REDUCE_SCATTER, source, destination, count, type, reduction, 0}, comm, stream);
}

ncclResult_t ncclAllGather(const void *source, void *destination, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_ALL_GATHER, source, destination, count, type, ncclSum, 0}, comm, stream);
}

ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_SEND, source, nullptr, count, type, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void *destination, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add({HUB_RECEIVE, nullptr, destination, count, type, ncclSum, peer}, comm, stream);
}
