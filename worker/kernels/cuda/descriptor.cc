/* descriptor.cc - creates, fills and destroys the descriptors of a graph: see descriptor.h. */
#include "worker/kernels/cuda/descriptor.h"

void descriptor_note(struct backend_graph *graph, cudnnStatus_t status, const char *what)
{
    if (graph->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return;
    graph->status = status;
    graph->what = what;
}

descriptor descriptor_make(struct backend_graph *graph, cudnnBackendDescriptorType_t type,
                           const char *what)
{
    descriptor made = nullptr;
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, backend_library.make(type, &made), what);
    if (made)
        graph->all.push_back(made);
    return made;
}

void descriptor_set(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, backend_library.set(of, name, type, count, values),
                        "setting an attribute");
}

void descriptor_link(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                     descriptor value)
{
    descriptor_set(graph, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void descriptor_finalize(struct backend_graph *graph, descriptor of, const char *what)
{
    if (graph->status == CUDNN_STATUS_SUCCESS)
        descriptor_note(graph, backend_library.finalize(of), what);
}

void descriptors_release(struct backend_graph *graph)
{
    for (auto each = graph->all.rbegin(); each != graph->all.rend(); ++each)
        backend_library.unmake(*each);
    graph->all.clear();
}
