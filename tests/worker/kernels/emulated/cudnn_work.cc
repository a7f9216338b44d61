/* cudnn_work.cc - executes a graph: one operation after the other, in double, each over whole
 * tensors. */
#include "tests/worker/kernels/emulated/cudnn_work.h"

#include <cmath>
#include <memory>

extern "C" {
#include "common/base/element.h"
}

namespace
{

/* A tensor while its graph runs: memory of the caller, a number of his, or memory of its own. */
struct tensor {
    cudnnDataType_t type;
    int64_t dims[4], apart[4];
    char *memory;
    bool by_value;
    double number;
    std::vector<double> own;

    int64_t count(void) const
    {
        return dims[0] * dims[1] * dims[2] * dims[3];
    }
    /* Dims that are shorter here than what is asked about are shared by neighbours. */
    void place(const int64_t *whole, const int64_t *at, int64_t *out) const
    {
        for (int i = 0; i < 4; i++)
            out[i] = at[i] * dims[i] / whole[i];
    }
    int64_t dense(const int64_t *at) const
    {
        return ((at[0] * dims[1] + at[1]) * dims[2] + at[2]) * dims[3] + at[3];
    }
    int64_t offset(const int64_t *at) const
    {
        return at[0] * apart[0] + at[1] * apart[1] + at[2] * apart[2] + at[3] * apart[3];
    }
    double get(const int64_t *at) const
    {
        if (by_value)
            return number;
        if (!memory)
            return own[(size_t)dense(at)];
        if (type == CUDNN_DATA_BFLOAT16)
            return bf16_widen(((const uint16_t *)(void *)memory)[offset(at)]);
        return ((const float *)(void *)memory)[offset(at)];
    }
    void set(const int64_t *at, double value)
    {
        uint16_t narrow = bf16_narrow((float)value);
        if (!memory)
            own[(size_t)dense(at)] = type == CUDNN_DATA_BFLOAT16 ? bf16_widen(narrow) : value;
        else if (type == CUDNN_DATA_BFLOAT16)
            ((uint16_t *)(void *)memory)[offset(at)] = narrow;
        else
            ((float *)(void *)memory)[offset(at)] = (float)value;
    }
    void index(int64_t number_of, int64_t *at) const
    {
        for (int i = 3; i >= 0; i--) {
            at[i] = number_of % dims[i];
            number_of /= dims[i];
        }
    }
};

/* What an execution knows: the tensors, by their descriptors. */
struct walk {
    std::map<descriptor, tensor> tensors;
    std::vector<descriptor> operations;

    tensor &of(descriptor operation, int name)
    {
        return tensors.at(one<descriptor>(operation, name));
    }
    tensor *maybe(descriptor operation, int name)
    {
        descriptor found = one<descriptor>(operation, name);
        return found ? &tensors.at(found) : nullptr;
    }
};

double value_at(const tensor *of, const tensor &whole, const int64_t *at)
{
    int64_t place[4];
    if (!of)
        return 0;
    of->place(whole.dims, at, place);
    return of->get(place);
}

void multiply(walk &walk, descriptor operation)
{
    const tensor &a = walk.of(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                 &b = walk.of(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    tensor &c = walk.of(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    for (int64_t i = 0; i < c.count(); i++) {
        int64_t at[4];
        double sum = 0;
        c.index(i, at);
        for (int64_t k = 0; k < a.dims[3]; k++) {
            int64_t left[4] = {at[0], at[1] * a.dims[1] / c.dims[1], at[2], k};
            int64_t right[4] = {at[0], at[1] * b.dims[1] / c.dims[1], k, at[3]};
            sum += a.get(left) * b.get(right);
        }
        c.set(at, sum);
    }
}

double each(cudnnPointwiseMode_t mode, double x, double b, double mask, int64_t place)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return mask != 0 ? x : b;
    case CUDNN_POINTWISE_GEN_INDEX:
        return (double)place;
    }
    return 0;
}

void compute_each(walk &walk, descriptor operation)
{
    descriptor how = one<descriptor>(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode = one<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE);
    int64_t axis = one<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS);
    const tensor *x = walk.maybe(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                 *b = walk.maybe(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                 *mask = walk.maybe(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    tensor &y = walk.of(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    for (int64_t i = 0; i < y.count(); i++) {
        int64_t at[4];
        y.index(i, at);
        y.set(at,
              each(mode, value_at(x, y, at), value_at(b, y, at), value_at(mask, y, at), at[axis]));
    }
}

void reduce(walk &walk, descriptor operation)
{
    descriptor how = one<descriptor>(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    bool adds =
        one<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
    const tensor &x = walk.of(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    tensor &y = walk.of(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    std::vector<double> results((size_t)y.count(), adds ? 0 : -INFINITY);
    for (int64_t i = 0; i < x.count(); i++) {
        int64_t at[4], to[4];
        x.index(i, at);
        y.place(x.dims, at, to);
        double &result = results[(size_t)y.dense(to)];
        result = adds ? result + x.get(at) : fmax(result, x.get(at));
    }
    for (int64_t i = 0; i < y.count(); i++) {
        int64_t at[4];
        y.index(i, at);
        y.set(at, results[(size_t)i]);
    }
}

/* The last two dims in each other's place, where they lie. */
void reshape(walk &walk, descriptor operation)
{
    const tensor &x = walk.of(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    tensor &y = walk.of(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    for (int64_t i = 0; i < y.count(); i++) {
        int64_t at[4];
        y.index(i, at);
        const int64_t from[4] = {at[0], at[1], at[3], at[2]};
        y.set(at, x.get(from));
    }
}

void run(walk &walk)
{
    for (descriptor operation : walk.operations)
        if (operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
            multiply(walk, operation);
        else if (operation->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
            compute_each(walk, operation);
        else if (operation->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
            reduce(walk, operation);
        else
            reshape(walk, operation);
}

/* From its first to its last element. */
bool is_there(const tensor &of)
{
    int64_t last = 0;
    for (int i = 0; i < 4; i++)
        last += (of.dims[i] - 1) * of.apart[i];
    return emulated_has(of.memory, (size_t)(last + 1) * (of.type == CUDNN_DATA_BFLOAT16 ? 2 : 4));
}

/* False: a tensor has no memory of the device, or none at a multiple of 16 bytes. */
bool add_tensor(walk &walk, descriptor of, const std::map<int64_t, void *> &memory)
{
    tensor made = {};
    std::vector<int64_t> dims = all<int64_t>(of, CUDNN_ATTR_TENSOR_DIMENSIONS),
                         apart = all<int64_t>(of, CUDNN_ATTR_TENSOR_STRIDES);
    made.type = one<cudnnDataType_t>(of, CUDNN_ATTR_TENSOR_DATA_TYPE);
    memcpy(made.dims, dims.data(), sizeof made.dims);
    memcpy(made.apart, apart.data(), sizeof made.apart);
    if (one<char>(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
        made.own.assign((size_t)made.count(), NAN);
    } else {
        auto found = memory.find(one<int64_t>(of, CUDNN_ATTR_TENSOR_UNIQUE_ID));
        if (found == memory.end())
            return false;
        made.by_value = one<char>(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
        if (made.by_value)
            made.number = (double)*(const float *)found->second;
        else
            made.memory = (char *)found->second;
        if (!made.by_value && ((uintptr_t)made.memory % 16 != 0 || !is_there(made)))
            return false;
    }
    walk.tensors[of] = std::move(made);
    return true;
}

} // namespace

std::function<void()> graph_work(descriptor graph, const std::map<int64_t, void *> &memory)
{
    auto walk = std::make_shared<struct walk>();
    walk->operations = all<descriptor>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (descriptor operation : walk->operations)
        for (const auto &attribute : operation->attributes) {
            descriptor of = one<descriptor>(operation, attribute.first);
            if (of->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !add_tensor(*walk, of, memory))
                return {};
        }
    return [walk] { run(*walk); };
}
