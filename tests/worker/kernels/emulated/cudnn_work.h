/* cudnn_work.h - the descriptors of the emulated cuDNN, which are maps of attributes, and the
 * execution of the graphs that they form. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_CUDNN_WORK_H
#define TESTS_WORKER_KERNELS_EMULATED_CUDNN_WORK_H

#include "tests/worker/kernels/emulated/cudnn_graph.h"

#include <cstring>
#include <functional>
#include <map>
#include <vector>

struct emulated_descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    std::map<int, std::vector<char>> attributes; /* the bytes of each, by its name */
};

typedef cudnnBackendDescriptor_t descriptor;

/* All values of an attribute; empty if it is not set. */
template <typename Value> std::vector<Value> all(descriptor of, int name)
{
    auto found = of->attributes.find(name);
    if (found == of->attributes.end())
        return {};
    std::vector<Value> out(found->second.size() / sizeof(Value));
    memcpy(out.data(), found->second.data(), found->second.size());
    return out;
}

/* The first value of an attribute; zero if it is not set. */
template <typename Value> Value one(descriptor of, int name)
{
    std::vector<Value> values = all<Value>(of, name);
    return values.empty() ? Value() : values[0];
}

/* The work of a graph, with the memory of its tensors by their ids. An empty function: a tensor has
 * no memory, or memory that is not the device's or not at a multiple of 16 bytes. */
std::function<void()> graph_work(descriptor graph, const std::map<int64_t, void *> &memory);

#endif
