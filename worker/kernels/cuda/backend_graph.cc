/* backend_graph.cc - adds tensors, and operations on them, to a graph. */
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/cuda/descriptor.h"

namespace
{

void finalize_operation(struct backend_graph *graph, descriptor operation, const char *what)
{
    descriptor_finalize(graph, operation, what);
    graph->operations.push_back(operation);
}

descriptor tensor(struct backend_graph *graph, int64_t id, cudnnDataType_t type,
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
void add_each(struct backend_graph *graph, cudnnPointwiseMode_t mode, int64_t dim, descriptor a,
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

} // namespace

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

void graph_reshape(struct backend_graph *graph, descriptor a, descriptor out)
{
    descriptor operation =
        descriptor_make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a reshape");
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, a);
    descriptor_link(graph, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out);
    finalize_operation(graph, operation, "a reshape");
}
