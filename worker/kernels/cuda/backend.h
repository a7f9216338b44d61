/* backend.h - graphs of operations for cuDNN, by its backend's C face, and plans to run them. The
 * library is loaded when it is wanted first: a device does without it.
 *
 * What goes wrong first in a graph is remembered; the calls behind it do nothing. */
#ifndef WORKER_KERNELS_CUDA_BACKEND_H
#define WORKER_KERNELS_CUDA_BACKEND_H

#include <cstdint>
#include <cudnn_graph.h>
#include <vector>

extern "C" {
#include "common/base/error.h"
}

/* Four dims, and how far apart their elements lie. */
struct layout {
    int64_t dims[4], apart[4];
};

typedef cudnnBackendDescriptor_t descriptor;

/* Tensors with memory have ids from 1 on, their users' names for them; others are numbered. */
struct backend_graph {
    std::vector<descriptor> all, operations;
    int64_t numbered;
    cudnnStatus_t status;
    const char *what; /* was being done then */
};

struct backend_plan {
    struct backend_graph graph;
    descriptor plan;
    int64_t workspace_bytes;
};

/* -ENODEV: there is no cuDNN, in words. */
int backend_load(struct error *err);
int backend_open(cudnnHandle_t *out, cudaStream_t stream, struct error *err);
void backend_close(cudnnHandle_t handle); /* accepts NULL */

/* An id of 0: the tensor is between operations, and has no memory. */
descriptor graph_tensor(struct backend_graph *graph, int64_t id, cudnnDataType_t type,
                        struct layout layout);
/* A number in f32 that the host holds when the plan is run. */
descriptor graph_number(struct backend_graph *graph, int64_t id);
void graph_multiply(struct backend_graph *graph, descriptor a, descriptor b, descriptor out);
/* b and mask: or NULL. */
void graph_each(struct backend_graph *graph, cudnnPointwiseMode_t mode, descriptor a, descriptor b,
                descriptor mask, descriptor out);
/* The place along a dim. */
void graph_index(struct backend_graph *graph, int64_t dim, descriptor a, descriptor out);
void graph_reduce(struct backend_graph *graph, cudnnReduceTensorOp_t how, descriptor a,
                  descriptor out);
void graph_reshape(struct backend_graph *graph, descriptor a, descriptor out);

/* Takes the graph. The first of the library's configurations that can be made; -ENOTSUP in words:
 * there is none. */
int plan_make(struct backend_graph *graph, cudnnHandle_t handle, struct backend_plan *out,
              struct error *err);
/* How many configurations the library has for the graph on a device that is described in JSON, as
 * it describes one itself; needs no device. Takes the graph; negative: none, in words. */
int plan_count(struct backend_graph *graph, const char *device_json, struct error *err);
cudnnStatus_t plan_run(const struct backend_plan *plan, cudnnHandle_t handle, int count,
                       const int64_t *ids, void *const *memory, void *workspace);
void plan_finish(struct backend_plan *plan);

#endif
