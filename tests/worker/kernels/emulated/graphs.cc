/* graphs.cc - CUDA graphs: work that a thread issues to a capturing stream is recorded, and
 * launched as a whole. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <memory>
#include <utility>
#include <vector>

int emulated_spoiled;

typedef std::vector<std::function<void()>> works;

struct emulated_graph {
    std::shared_ptr<const works> work;
};

namespace
{

struct capture {
    cudaStream_t stream; /* nullptr: none */
    works work;
    bool spoiled;
};

thread_local capture ours;

} // namespace

bool emulated_captures(cudaStream_t stream)
{
    return ours.stream == stream;
}

bool emulated_keep(cudaStream_t stream, const std::function<void()> &work)
{
    if (!emulated_captures(stream))
        return false;
    ours.work.push_back(work);
    return true;
}

bool emulated_spoils()
{
    ours.spoiled = ours.spoiled || ours.stream;
    return ours.stream;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    ours = {stream, {}, emulated_spoiled > 0};
    emulated_spoiled -= emulated_spoiled > 0;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    *out = nullptr;
    if (!emulated_captures(stream))
        return cudaErrorInvalidValue;
    capture ended = std::exchange(ours, {});
    if (ended.spoiled)
        return cudaErrorStreamCaptureInvalidated;
    *out = new emulated_graph{std::make_shared<const works>(std::move(ended.work))};
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long)
{
    *out = new emulated_graph(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    std::shared_ptr<const works> all = graph->work;
    emulated_count(stream);
    emulated_issue(stream, [=] {
        for (const std::function<void()> &work : *all)
            work();
    });
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}
