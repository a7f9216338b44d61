/* backend_plan.cc - makes the plan of a graph from the first of cuDNN's configurations that can be
 * built, and runs it. */
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/cuda/descriptor.h"

#include <cerrno>
#include <cstring>

namespace
{

int fail(struct backend_graph *graph, struct error *err)
{
    return error_set(err, -ENOTSUP, "cuDNN, %s: status %d", graph->what ? graph->what : "a graph",
                     (int)graph->status);
}

/* The heuristics of a graph, for the device of a handle or for one that is described; the other is
 * NULL. */
descriptor heuristics(struct backend_graph *graph, cudnnHandle_t handle, descriptor device)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    descriptor whole = descriptor_make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "a graph");
    descriptor_set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                   (int64_t)graph->operations.size(), graph->operations.data());
    if (handle)
        descriptor_set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                       &handle);
    descriptor_finalize(graph, whole, "a graph");
    descriptor made = descriptor_make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    descriptor_link(graph, made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    descriptor_set(graph, made, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device)
        descriptor_link(graph, made, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    descriptor_finalize(graph, made, "heuristics");
    return made;
}

/* The number of configurations. */
int64_t count_results(struct backend_graph *graph, descriptor of)
{
    int64_t count = 0;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph,
                        backend_library.get(of, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                        "asking for configurations");
    return count;
}

/* Build the plan of a configuration; NULL if it cannot be built, which is no error of the graph. */
descriptor try_plan(struct backend_graph *graph, cudnnHandle_t handle, descriptor configuration)
{
    descriptor made = descriptor_make(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
    if (!made)
        return nullptr;
    bool good = backend_library.set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                    &configuration) == CUDNN_STATUS_SUCCESS &&
                backend_library.set(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                    &handle) == CUDNN_STATUS_SUCCESS &&
                backend_library.finalize(made) == CUDNN_STATUS_SUCCESS;
    return good ? made : nullptr;
}

} // namespace

int plan_make(struct backend_graph *graph, cudnnHandle_t handle, struct backend_plan *out,
              struct error *err)
{
    descriptor from = heuristics(graph, handle, nullptr);
    int64_t count = count_results(graph, from), given = 0;
    std::vector<descriptor> configurations((size_t)count);
    for (descriptor &each : configurations)
        each = descriptor_make(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration");
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph,
                        backend_library.get(from, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &given,
                                            configurations.data()),
                        "asking for configurations");
    descriptor plan = nullptr;
    for (int64_t i = 0; i < given && !plan; i++)
        plan = try_plan(graph, handle, configurations[(size_t)i]);
    if (!plan)
        descriptor_note(graph, CUDNN_STATUS_NOT_SUPPORTED, "making a plan");
    int64_t bytes = 0, one = 0;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph,
                        backend_library.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            CUDNN_TYPE_INT64, 1, &one, &bytes),
                        "asking for a plan's workspace");
    if (graph->status != CUDNN_STATUS_SUCCESS) {
        descriptors_release(graph);
        return fail(graph, err);
    }
    *out = {std::move(*graph), plan, bytes};
    return 0;
}

int plan_count(struct backend_graph *graph, const char *device_json, struct error *err)
{
    descriptor device = descriptor_make(graph, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a device");
    descriptor_set(graph, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   (int64_t)strlen(device_json) + 1, device_json);
    descriptor_finalize(graph, device, "a device");
    int count = (int)count_results(graph, heuristics(graph, nullptr, device));
    bool good = graph->status == CUDNN_STATUS_SUCCESS;
    descriptors_release(graph);
    return good ? count : fail(graph, err);
}

cudnnStatus_t plan_run(const struct backend_plan *plan, cudnnHandle_t handle, int count,
                       const int64_t *ids, void *const *memory, void *workspace)
{
    descriptor pack;
    cudnnStatus_t status = backend_library.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    status = backend_library.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                                 count, memory);
    if (status == CUDNN_STATUS_SUCCESS)
        status = backend_library.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                     count, ids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = backend_library.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                     1, &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = backend_library.finalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = backend_library.execute(handle, plan->plan, pack);
    backend_library.unmake(pack);
    return status;
}

void plan_finish(struct backend_plan *plan)
{
    descriptors_release(&plan->graph);
}
