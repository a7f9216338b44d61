/* descriptor.h - what the files that implement backend.h share: cuDNN's functions, and the
 * descriptors of a graph. A descriptor is created, given its attributes and finalized; the graph
 * keeps it for as long as its plan is needed. Once the graph has an error, functions other
 * than descriptors_release() do nothing. */
#ifndef WORKER_KERNELS_CUDA_DESCRIPTOR_H
#define WORKER_KERNELS_CUDA_DESCRIPTOR_H

#include "worker/kernels/cuda/backend.h"

/* The functions of the loaded library. */
struct backend_functions {
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

extern struct backend_functions backend_library; /* filled by backend_load() */

/* Remember the status if it is the graph's first error. `what` was being done: a string literal. */
void descriptor_note(struct backend_graph *graph, cudnnStatus_t status, const char *what);

/* Create a descriptor that the graph owns. NULL: the graph has an error. */
descriptor descriptor_make(struct backend_graph *graph, cudnnBackendDescriptorType_t type,
                           const char *what);
/* Set an attribute to `count` values of the type. */
void descriptor_set(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values);
/* Set an attribute that is another descriptor. */
void descriptor_link(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                     descriptor value);
void descriptor_finalize(struct backend_graph *graph, descriptor of, const char *what);
/* Destroy all descriptors of the graph, the last one first. */
void descriptors_release(struct backend_graph *graph);

#endif
