/* cudnn_graph.cc - loads cuDNN on first use; adds tensors, and operations on them, to a graph; and
 * makes the plan of a graph from the first of cuDNN's configurations that can be built, and runs
 * it.
 *
 * A descriptor is created, given its attributes and finalized; the graph keeps it for as long as
 * its plan is needed. Once the graph has an error, functions other than descriptors_release() do
 * nothing. */
#include "worker/kernels/cuda/cudnn_graph.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

#ifndef CUDNN_LIBRARY
#define CUDNN_LIBRARY "libcudnn.so.9"
#endif

namespace
{

/* The functions of the loaded library. */
struct cudnn_functions {
    decltype(&cudnnCreate) create;
    decltype(&cudnnDestroy) destroy;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnBackendCreateDescriptor) make;
    decltype(&cudnnBackendDestroyDescriptor) unmake;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
} cudnn_library; /* filled by backend_load() */

template <typename Function> bool library_find(void *from, const char *name, Function *out)
{
    *out = reinterpret_cast<Function>(dlsym(from, name));
    return *out != nullptr;
}

bool library_find_all(void *from)
{
    return library_find(from, "cudnnCreate", &cudnn_library.create) &&
           library_find(from, "cudnnDestroy", &cudnn_library.destroy) &&
           library_find(from, "cudnnSetStream", &cudnn_library.set_stream) &&
           library_find(from, "cudnnBackendCreateDescriptor", &cudnn_library.make) &&
           library_find(from, "cudnnBackendDestroyDescriptor", &cudnn_library.unmake) &&
           library_find(from, "cudnnBackendSetAttribute", &cudnn_library.set) &&
           library_find(from, "cudnnBackendGetAttribute", &cudnn_library.get) &&
           library_find(from, "cudnnBackendFinalize", &cudnn_library.finalize) &&
           library_find(from, "cudnnBackendExecute", &cudnn_library.execute);
}

/* ---- descriptors ---- */

/* Remember the status if it is the graph's first error. `what` was being done: a string literal. */
void descriptor_note(struct cudnn_graph *graph, cudnnStatus_t status, const char *what)
{
    if (graph->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return;
    graph->status = status;
    graph->what = what;
}

/* Create a descriptor that the graph owns. NULL: the graph has an error. */
descriptor descriptor_make(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                           const char *what)
{
    descriptor made = nullptr;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, cudnn_library.make(type, &made), what);
    if (made)
        graph->all.push_back(made);
    return made;
}

/* Set an attribute to `count` values of the type. */
void descriptor_set(struct cudnn_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, cudnn_library.set(of, name, type, count, values),
                        "setting an attribute");
}

/* Set an attribute that is another descriptor. */
void descriptor_link(struct cudnn_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                     descriptor value)
{
    descriptor_set(graph, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void descriptor_finalize(struct cudnn_graph *graph, descriptor of, const char *what)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, cudnn_library.finalize(of), what);
}

/* Destroy all descriptors of the graph, the last one first. */
void descriptors_release(struct cudnn_graph *graph)
{
    for (auto each = graph->all.rbegin(); each != graph->all.rend(); ++each)
        cudnn_library.unmake(*each);
    graph->all.clear();
}

/* ---- operations ---- */

void finalize_operation(struct cudnn_graph *graph, descriptor operation, const char *what)
{
    descriptor_finalize(graph, operation, what);
    graph->operations.push_back(operation);
}

descriptor add_tensor(struct cudnn_graph *graph, int64_t id, cudnnDataType_t type,
                      const struct layout *layout, bool by_value)
{
    descriptor made = descriptor_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    int64_t alignment = 16, number = id > 0 ? id : 1000 + graph->numbered++;
    bool between = id == 0;
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, layout->dims);
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, layout->apart);
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    descriptor_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
    if (by_value)
        descriptor_set(graph, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
                       &by_value);
    descriptor_finalize(graph, made, "a tensor");
    return made;
}

/* dim: the axis of GEN_INDEX; -1 for other modes. */
void add_each(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, int64_t dim, descriptor a,
              descriptor b, descriptor mask, descriptor out)
{
    cudnnDataType_t type = mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    descriptor how = descriptor_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an operation");
    descriptor_set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    descriptor_set(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (dim >= 0)
        descriptor_set(graph, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &dim);
    descriptor_finalize(graph, how, "an operation");
    descriptor operation =
        descriptor_make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an operation");
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
    if (b)
        descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (mask)
        descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    finalize_operation(graph, operation, "an operation");
}

/* ---- plans ---- */

int graph_fail(struct cudnn_graph *graph, struct error *err)
{
    return error_set(err, -ENOTSUP, "cuDNN, %s: status %d", graph->what ? graph->what : "a graph",
                     (int)graph->status);
}

/* The heuristics of a graph, for the device of a handle or for one that is described; the other is
 * NULL. */
descriptor heuristics(struct cudnn_graph *graph, cudnnHandle_t handle, descriptor device)
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
int64_t count_results(struct cudnn_graph *graph, descriptor of)
{
    int64_t count = 0;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph,
                        cudnn_library.get(of, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                        "asking for configurations");
    return count;
}

/* Build the plan of a configuration; NULL if it cannot be built, which is no error of the graph. */
descriptor try_plan(struct cudnn_graph *graph, cudnnHandle_t handle, descriptor configuration)
{
    descriptor made = descriptor_make(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
    if (!made)
        return nullptr;
    bool good = cudnn_library.set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                  &configuration) == CUDNN_STATUS_SUCCESS &&
                cudnn_library.set(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                  &handle) == CUDNN_STATUS_SUCCESS &&
                cudnn_library.finalize(made) == CUDNN_STATUS_SUCCESS;
    return good ? made : nullptr;
}

} // namespace

int backend_load(struct error *err)
{
    static std::mutex lock;
    static bool loaded;
    std::lock_guard<std::mutex> guard(lock);
    if (loaded)
        return 0;
    void *handle = dlopen(CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return error_set(err, -ENODEV, "cuDNN 9 is not here: %s", dlerror());
    loaded = library_find_all(handle);
    return loaded ? 0 : error_set(err, -ENODEV, "cuDNN lacks a function: %s", dlerror());
}

int backend_open(cudnnHandle_t *out, cudaStream_t stream, struct error *err)
{
    int rc = backend_load(err);
    if (rc < 0)
        return rc;
    cudnnStatus_t status = cudnn_library.create(out);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_library.set_stream(*out, stream);
    return status == CUDNN_STATUS_SUCCESS
               ? 0
               : error_set(err, -EIO, "cuDNN cannot be initialised: status %d", (int)status);
}

void backend_close(cudnnHandle_t handle)
{
    if (handle)
        cudnn_library.destroy(handle);
}

descriptor graph_tensor(struct cudnn_graph *graph, int64_t id, cudnnDataType_t type,
                        struct layout layout)
{
    return add_tensor(graph, id, type, &layout, false);
}

descriptor graph_number(struct cudnn_graph *graph, int64_t id)
{
    const struct layout one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return add_tensor(graph, id, CUDNN_DATA_FLOAT, &one, true);
}

void graph_multiply(struct cudnn_graph *graph, descriptor a, descriptor b, descriptor out)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor how = descriptor_make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
    descriptor_set(graph, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    descriptor_finalize(graph, how, "a product");
    descriptor operation =
        descriptor_make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, out);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finalize_operation(graph, operation, "a product");
}

void graph_each(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, descriptor a, descriptor b,
                descriptor mask, descriptor out)
{
    add_each(graph, mode, -1, a, b, mask, out);
}

void graph_index(struct cudnn_graph *graph, int64_t dim, descriptor a, descriptor out)
{
    add_each(graph, CUDNN_POINTWISE_GEN_INDEX, dim, a, nullptr, nullptr, out);
}

void graph_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t how, descriptor a,
                  descriptor out)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor rule = descriptor_make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
    descriptor_set(graph, rule, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    descriptor_set(graph, rule, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                   1, &how);
    descriptor_finalize(graph, rule, "a reduction");
    descriptor operation =
        descriptor_make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction");
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, rule);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, a);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out);
    finalize_operation(graph, operation, "a reduction");
}

void graph_reshape(struct cudnn_graph *graph, descriptor a, descriptor out)
{
    descriptor operation =
        descriptor_make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a reshape");
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, a);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out);
    finalize_operation(graph, operation, "a reshape");
}

int plan_make(struct cudnn_graph *graph, cudnnHandle_t handle, struct cudnn_plan *out,
              struct error *err)
{
    descriptor from = heuristics(graph, handle, nullptr);
    int64_t count = count_results(graph, from), given = 0;
    std::vector<descriptor> configurations((size_t)count);
    for (descriptor &each : configurations)
        each = descriptor_make(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration");
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph,
                        cudnn_library.get(from, CUDNN_ATTR_ENGINEHEUR_RESULTS,
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
                        cudnn_library.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &one, &bytes),
                        "asking for a plan's workspace");
    if (graph->status != CUDNN_STATUS_SUCCESS) {
        descriptors_release(graph);
        return graph_fail(graph, err);
    }
    *out = {std::move(*graph), plan, bytes};
    return 0;
}

int plan_count(struct cudnn_graph *graph, const char *device_json, struct error *err)
{
    descriptor device = descriptor_make(graph, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a device");
    descriptor_set(graph, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   (int64_t)strlen(device_json) + 1, device_json);
    descriptor_finalize(graph, device, "a device");
    int count = (int)count_results(graph, heuristics(graph, nullptr, device));
    bool good = graph->status == CUDNN_STATUS_SUCCESS;
    descriptors_release(graph);
    return good ? count : graph_fail(graph, err);
}

cudnnStatus_t plan_run(const struct cudnn_plan *plan, cudnnHandle_t handle, int count,
                       const int64_t *ids, void *const *memory, void *workspace)
{
    descriptor pack;
    cudnnStatus_t status = cudnn_library.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    status = cudnn_library.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                               count, memory);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_library.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                   count, ids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_library.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                                   &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_library.finalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_library.execute(handle, plan->plan, pack);
    cudnn_library.unmake(pack);
    return status;
}

void plan_finish(struct cudnn_plan *plan)
{
    descriptors_release(&plan->graph);
}
