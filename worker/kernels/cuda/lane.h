/* lane.h - a lane is a CUDA stream, with the scratch that its kernels share and the first thing
 * that went wrong in it. */
#ifndef WORKER_KERNELS_CUDA_LANE_H
#define WORKER_KERNELS_CUDA_LANE_H

#include <cstdint>
#include <cublasLt.h>
#include <cuda_runtime.h>

#define SCRATCH_BYTES (INT64_C(4) << 20)    /* parts of sums */
#define WORKSPACE_BYTES (INT64_C(32) << 20) /* of matrix products */

struct product; /* product.h: how a shape is multiplied */
struct flash;   /* flash.h */

struct lane {
    cudaStream_t stream;
    cublasLtHandle_t handle;
    float *scratch;
    void *workspace;
    product *products;
    struct flash *flash; /* NULL: no attention yet */
    int status;          /* 0, or the first CUDA error */
    const char *what;    /* that was being done then */
};

/* The calling thread's. */
lane *lane_here(void);
/* Remember what went wrong first. */
void lane_note(cudaError_t status, const char *what);
void lane_note(cublasStatus_t status, const char *what);

#endif
