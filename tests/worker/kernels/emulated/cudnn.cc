/* cudnn.cc - cuDNN's functions: descriptors, checks that they are complete, and plans. */
#include "tests/worker/kernels/emulated/cudnn_work.h"
#include "tests/worker/kernels/emulated/runtime.h"

#define WORKSPACE 512 /* asked for in any case, so that a plan without one shows */

struct emulated_cudnn {
    cudaStream_t stream;
};

namespace
{

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
        return 4;
    default:
        return 8;
    }
}

/* All that a tensor needs, with the alignment that none may lack. */
bool complete(descriptor of)
{
    if (of->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        return true;
    std::vector<int64_t> dims = all<int64_t>(of, CUDNN_ATTR_TENSOR_DIMENSIONS);
    for (int64_t dim : dims)
        if (dim < 1)
            return false;
    return dims.size() == 4 && all<int64_t>(of, CUDNN_ATTR_TENSOR_STRIDES).size() == 4 &&
           one<int64_t>(of, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 16;
}

/* As the library does: where a matrix of scores is turned, all of it lies in the workspace. */
size_t workspace_of(descriptor plan)
{
    descriptor configuration = one<descriptor>(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    descriptor graph = one<descriptor>(configuration, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    int64_t most = 0;
    for (descriptor operation : all<descriptor>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        if (operation->type != CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
            continue;
        descriptor turned = one<descriptor>(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
        int64_t count = 1;
        for (int64_t dim : all<int64_t>(turned, CUDNN_ATTR_TENSOR_DIMENSIONS))
            count *= dim;
        most = count > most ? count : most;
    }
    return WORKSPACE + (size_t)most * 2;
}

} // namespace

int emulated_graphs, emulated_plans;

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    *out = new emulated_cudnn();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, descriptor *out)
{
    *out = new emulated_descriptor{type, false, {}};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(descriptor of)
{
    delete of;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(descriptor of, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    if (of->final)
        return CUDNN_STATUS_BAD_PARAM;
    const char *bytes = (const char *)values;
    of->attributes[name].assign(bytes, bytes + (size_t)count * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(descriptor of, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t asked, int64_t *count,
                                       void *values)
{
    if (!of->final)
        return CUDNN_STATUS_BAD_PARAM;
    *count = 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        *(int64_t *)values = (int64_t)workspace_of(of);
    else if (asked > 0) /* the configuration is that graph */
        (*(descriptor *)values)->attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
            of->attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH];
    return CUDNN_STATUS_SUCCESS;
}

/* To load a plan's code waits for the device, as the real one does. */
cudnnStatus_t cudnnBackendFinalize(descriptor of)
{
    of->final = complete(of);
    if (of->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        std::lock_guard<std::recursive_mutex> guard(emulated_lock);
        emulated_finish_all();
        emulated_plans++;
    }
    return of->final ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, descriptor plan, descriptor pack)
{
    descriptor configuration = one<descriptor>(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    descriptor graph = one<descriptor>(configuration, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    std::vector<int64_t> ids = all<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *> places = all<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    std::map<int64_t, void *> memory;
    char *workspace = one<char *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    for (size_t i = 0; i < ids.size(); i++)
        memory[ids[i]] = places[i];
    std::function<void()> work = graph_work(graph, memory);
    size_t bytes = workspace_of(plan);
    if (!work || !emulated_has(workspace, bytes) || !pack->final || !plan->final)
        return CUDNN_STATUS_BAD_PARAM;
    __atomic_fetch_add(&emulated_graphs, 1, __ATOMIC_RELAXED);
    emulated_issue(handle->stream, [work, workspace, bytes] {
        memset(workspace, 0xff, bytes);
        work();
    });
    return CUDNN_STATUS_SUCCESS;
}
