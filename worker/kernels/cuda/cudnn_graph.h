/* cudnn_graph.h - operation graphs for cuDNN, built with the C interface of its backend, and the
 * plans that execute them. cuDNN is optional: the library is loaded on first use.
 *
 * A graph remembers its first error, and further calls on it do nothing; plan_make() and
 * plan_count() report it. A graph is used by one thread at a time. */
#ifndef WORKER_KERNELS_CUDA_CUDNN_GRAPH_H
#define WORKER_KERNELS_CUDA_CUDNN_GRAPH_H

#include <cstdint>
#include <cudnn_graph.h>
#include <vector>

extern "C" {
#include "common/base/error.h"
}

/* Four dims and their strides, in elements. */
struct layout {
    int64_t dims[4], apart[4];
};

typedef cudnnBackendDescriptor_t descriptor;

/* Tensors that have memory carry ids from 1 on, which the caller chooses; the others are numbered
 * here. Zero-initialised: an empty graph. */
struct cudnn_graph {
    std::vector<descriptor> all, operations; /* all: owned, in order of creation */
    int64_t numbered;                        /* tensors without memory, so far */
    cudnnStatus_t status;                    /* the first error */
    const char *what;                        /* what was being done then; NULL: no error */
};

struct cudnn_plan {
    struct cudnn_graph graph;
    descriptor plan;
    int64_t workspace_bytes;
};

/* Load the library unless it is loaded; from any thread. -ENODEV: there is no cuDNN 9, or it lacks
 * a function. */
int backend_load(struct error *err);
/* Load the library, and create a handle that issues to the stream. -ENODEV: as above; -EIO. */
int backend_open(cudnnHandle_t *out, cudaStream_t stream, struct error *err);
void backend_close(cudnnHandle_t handle); /* accepts NULL */

/* Each of the following adds to the graph; the descriptors belong to it. They are NULL, or
 * unusable, once the graph has an error. */

/* A tensor. An id of 0: an intermediate result, which has no memory. */
descriptor graph_tensor(struct cudnn_graph *graph, int64_t id, cudnnDataType_t type,
                        struct layout layout);
/* An f32 scalar that is read from host memory when the plan is run. */
descriptor graph_number(struct cudnn_graph *graph, int64_t id);
/* out = a b, matrices of the last two dims, summed in f32. */
void graph_multiply(struct cudnn_graph *graph, descriptor a, descriptor b, descriptor out);
/* A pointwise operation in f32. b and mask may be NULL if the mode does not take them. */
void graph_each(struct cudnn_graph *graph, cudnnPointwiseMode_t mode, descriptor a, descriptor b,
                descriptor mask, descriptor out);
/* Each element of out becomes its own index along a dim; a gives the shape. */
void graph_index(struct cudnn_graph *graph, int64_t dim, descriptor a, descriptor out);
/* Reduce, in f32, the dims in which out has length 1. */
void graph_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t how, descriptor a,
                  descriptor out);
/* The memory of a, seen with the dims and strides of out. */
void graph_reshape(struct cudnn_graph *graph, descriptor a, descriptor out);

/* Make a plan of the first configuration, in the order of cuDNN's heuristics, that can be built.
 * The graph is consumed: it moves into the plan, or is released on failure. -ENOTSUP: the graph has
 * an error, or no configuration can be built. */
int plan_make(struct cudnn_graph *graph, cudnnHandle_t handle, struct cudnn_plan *out,
              struct error *err);
/* The number of configurations that cuDNN offers for the graph on a device described in JSON, in
 * the format of cuDNN's own descriptions of devices. Needs no device. Releases the graph. -ENOTSUP:
 * the graph has an error, or cuDNN does not support it. */
int plan_count(struct cudnn_graph *graph, const char *device_json, struct error *err);
/* Issue the plan to the handle's stream. memory[i] is the address of tensor ids[i], `count` of
 * them; workspace is device memory of at least workspace_bytes. */
cudnnStatus_t plan_run(const struct cudnn_plan *plan, cudnnHandle_t handle, int count,
                       const int64_t *ids, void *const *memory, void *workspace);
void plan_finish(struct cudnn_plan *plan);

#endif
