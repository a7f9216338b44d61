/* backend.cc - descriptors: made, told their attributes, finalized, and kept until their plan is
 * not needed any more. */
#include "worker/kernels/cuda/backend.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

#ifndef CUDNN_LIBRARY
#define CUDNN_LIBRARY "libcudnn.so.9"
#endif

namespace
{

/* The library's functions, by their names. */
struct functions {
    decltype(&cudnnCreate) create;
    decltype(&cudnnDestroy) destroy;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnBackendCreateDescriptor) make;
    decltype(&cudnnBackendDestroyDescriptor) unmake;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
};

struct functions library;

template <typename Function> bool find(void *from, const char *name, Function *out)
{
    *out = reinterpret_cast<Function>(dlsym(from, name));
    return *out != nullptr;
}

bool find_all(void *from)
{
    return find(from, "cudnnCreate", &library.create) &&
           find(from, "cudnnDestroy", &library.destroy) &&
           find(from, "cudnnSetStream", &library.set_stream) &&
           find(from, "cudnnBackendCreateDescriptor", &library.make) &&
           find(from, "cudnnBackendDestroyDescriptor", &library.unmake) &&
           find(from, "cudnnBackendSetAttribute", &library.set) &&
           find(from, "cudnnBackendGetAttribute", &library.get) &&
           find(from, "cudnnBackendFinalize", &library.finalize) &&
           find(from, "cudnnBackendExecute", &library.execute);
}

void note(struct backend_graph *graph, cudnnStatus_t status, const char *what)
{
    if (graph->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return;
    graph->status = status;
    graph->what = what;
}

descriptor make(struct backend_graph *graph, cudnnBackendDescriptorType_t type, const char *what)
{
    descriptor made = nullptr;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph, library.make(type, &made), what);
    if (made)
        graph->all.push_back(made);
    return made;
}

void set(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph, library.set(of, name, type, count, values), "setting an attribute");
}

void set_descriptor(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                    descriptor value)
{
    set(graph, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void finalize(struct backend_graph *graph, descriptor of, const char *what)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph, library.finalize(of), what);
}

void finalize_operation(struct backend_graph *graph, descriptor operation, const char *what)
{
    finalize(graph, operation, what);
    graph->operations.push_back(operation);
}

void release(struct backend_graph *graph)
{
    for (auto each = graph->all.rbegin(); each != graph->all.rend(); ++each)
        library.unmake(*each);
    graph->all.clear();
}

int fail(struct backend_graph *graph, struct error *err)
{
    return error_set(err, -ENOTSUP, "cuDNN, %s: status %d", graph->what ? graph->what : "a graph",
                     (int)graph->status);
}

descriptor tensor(struct backend_graph *graph, int64_t id, cudnnDataType_t type,
                  const struct layout *layout, bool by_value)
{
    descriptor made = make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    int64_t alignment = 16, number = id > 0 ? id : 1000 + graph->numbered++;
    bool between = id == 0;
    set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, layout->dims);
    set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, layout->apart);
    set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
    set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
    if (by_value)
        set(graph, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finalize(graph, made, "a tensor");
    return made;
}

/* Heuristics of a graph: for a handle's device, or for one that is described. */
descriptor heuristics(struct backend_graph *graph, cudnnHandle_t handle, descriptor device)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    descriptor whole = make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "a graph");
    set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        (int64_t)graph->operations.size(), graph->operations.data());
    if (handle)
        set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finalize(graph, whole, "a graph");
    descriptor made = make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    set_descriptor(graph, made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(graph, made, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device)
        set_descriptor(graph, made, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    finalize(graph, made, "heuristics");
    return made;
}

/* How many configurations there are. */
int64_t count_results(struct backend_graph *graph, descriptor of)
{
    int64_t count = 0;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph,
             library.get(of, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                         &count, nullptr),
             "asking for configurations");
    return count;
}

/* The plan of a configuration, or NULL; a failure is no fault of the graph. */
descriptor try_plan(struct backend_graph *graph, cudnnHandle_t handle, descriptor configuration)
{
    descriptor made = make(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
    if (!made)
        return nullptr;
    bool good =
        library.set(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &configuration) == CUDNN_STATUS_SUCCESS &&
        library.set(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) ==
            CUDNN_STATUS_SUCCESS &&
        library.finalize(made) == CUDNN_STATUS_SUCCESS;
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
    loaded = find_all(handle);
    return loaded ? 0 : error_set(err, -ENODEV, "cuDNN lacks a function: %s", dlerror());
}

int backend_open(cudnnHandle_t *out, cudaStream_t stream, struct error *err)
{
    int rc = backend_load(err);
    if (rc < 0)
        return rc;
    cudnnStatus_t status = library.create(out);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library.set_stream(*out, stream);
    return status == CUDNN_STATUS_SUCCESS
               ? 0
               : error_set(err, -EIO, "cuDNN cannot be initialised: status %d", (int)status);
}

void backend_close(cudnnHandle_t handle)
{
    if (handle)
        library.destroy(handle);
}

descriptor graph_tensor(struct backend_graph *graph, int64_t id, cudnnDataType_t type,
                        struct layout layout)
{
    return tensor(graph, id, type, &layout, false);
}

descriptor graph_number(struct backend_graph *graph, int64_t id)
{
    const struct layout one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return tensor(graph, id, CUDNN_DATA_FLOAT, &one, true);
}

void graph_multiply(struct backend_graph *graph, descriptor a, descriptor b, descriptor out)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor how = make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
    set(graph, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finalize(graph, how, "a product");
    descriptor operation = make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, out);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finalize_operation(graph, operation, "a product");
}

/* dim < 0: no place is asked for. */
static void add_each(struct backend_graph *graph, cudnnPointwiseMode_t mode, int64_t dim,
                     descriptor a, descriptor b, descriptor mask, descriptor out)
{
    cudnnDataType_t type = mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    descriptor how = make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an operation");
    set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (dim >= 0)
        set(graph, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &dim);
    finalize(graph, how, "an operation");
    descriptor operation =
        make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an operation");
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
    if (b)
        set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (mask)
        set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    finalize_operation(graph, operation, "an operation");
}

void graph_each(struct backend_graph *graph, cudnnPointwiseMode_t mode, descriptor a, descriptor b,
                descriptor mask, descriptor out)
{
    add_each(graph, mode, -1, a, b, mask, out);
}

void graph_index(struct backend_graph *graph, int64_t dim, descriptor a, descriptor out)
{
    add_each(graph, CUDNN_POINTWISE_GEN_INDEX, dim, a, nullptr, nullptr, out);
}

void graph_reduce(struct backend_graph *graph, cudnnReduceTensorOp_t how, descriptor a,
                  descriptor out)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor rule = make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
    set(graph, rule, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, rule, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    finalize(graph, rule, "a reduction");
    descriptor operation = make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction");
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, rule);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, a);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out);
    finalize_operation(graph, operation, "a reduction");
}

void graph_reshape(struct backend_graph *graph, descriptor a, descriptor out)
{
    descriptor operation = make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a reshape");
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, a);
    set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out);
    finalize_operation(graph, operation, "a reshape");
}

int plan_make(struct backend_graph *graph, cudnnHandle_t handle, struct backend_plan *out,
              struct error *err)
{
    descriptor from = heuristics(graph, handle, nullptr);
    int64_t count = count_results(graph, from), given = 0;
    std::vector<descriptor> configurations((size_t)count);
    for (descriptor &each : configurations)
        each = make(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration");
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph,
             library.get(from, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                         &given, configurations.data()),
             "asking for configurations");
    descriptor plan = nullptr;
    for (int64_t i = 0; i < given && !plan; i++)
        plan = try_plan(graph, handle, configurations[(size_t)i]);
    if (!plan)
        note(graph, CUDNN_STATUS_NOT_SUPPORTED, "making a plan");
    int64_t bytes = 0, one = 0;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        note(graph,
             library.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                         &bytes),
             "asking for a plan's workspace");
    if (graph->status != CUDNN_STATUS_SUCCESS) {
        release(graph);
        return fail(graph, err);
    }
    *out = {std::move(*graph), plan, bytes};
    return 0;
}

int plan_count(struct backend_graph *graph, const char *device_json, struct error *err)
{
    descriptor device = make(graph, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a device");
    set(graph, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
        (int64_t)strlen(device_json) + 1, device_json);
    finalize(graph, device, "a device");
    int count = (int)count_results(graph, heuristics(graph, nullptr, device));
    bool good = graph->status == CUDNN_STATUS_SUCCESS;
    release(graph);
    return good ? count : fail(graph, err);
}

cudnnStatus_t plan_run(const struct backend_plan *plan, cudnnHandle_t handle, int count,
                       const int64_t *ids, void *const *memory, void *workspace)
{
    descriptor pack;
    cudnnStatus_t status = library.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    status = library.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                         memory);
    if (status == CUDNN_STATUS_SUCCESS)
        status =
            library.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                             &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library.finalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library.execute(handle, plan->plan, pack);
    library.unmake(pack);
    return status;
}

void plan_finish(struct backend_plan *plan)
{
    release(&plan->graph);
}
