/* descriptor.h - what the files behind backend.h share: cuDNN's functions, and the descriptors of a
 * graph, which are made, told their attributes, finalized, and kept until their plan is not needed
 * any more. */
#ifndef WORKER_KERNELS_CUDA_DESCRIPTOR_H
#define WORKER_KERNELS_CUDA_DESCRIPTOR_H

#include "worker/kernels/cuda/backend.h"

/* The library's functions, by their names. */
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

/* What goes wrong first is remembered, with what was being done; success changes nothing. */
void descriptor_note(struct backend_graph *graph, cudnnStatus_t status, const char *what);

/* Of the graph, which keeps it; NULL: something went wrong. */
descriptor descriptor_make(struct backend_graph *graph, cudnnBackendDescriptorType_t type,
                           const char *what);
void descriptor_set(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values);
/* An attribute that is another descriptor. */
void descriptor_link(struct backend_graph *graph, descriptor of, cudnnBackendAttributeName_t name,
                     descriptor value);
void descriptor_finalize(struct backend_graph *graph, descriptor of, const char *what);
/* All of the graph, the last one first. */
void descriptors_release(struct backend_graph *graph);

#endif
