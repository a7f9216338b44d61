/* lane.h - a lane is a CUDA stream, with the scratch that its kernels share and the first thing
 * that went wrong in it. */
#ifndef WORKER_KERNELS_CUDA_LANE_H
#define WORKER_KERNELS_CUDA_LANE_H

#include <cstdint>
#include <cublasLt.h>
#include <cuda_runtime.h>

#define SCRATCH_BYTES (UINT64_C(4) << 20) /* parts of sums */
/* Of libraries, which take turns: this share of the device's memory, up to a limit. The more, the
 * fewer parts attention is run in. */
#define WORKSPACE_SHARE 64
#define WORKSPACE_BYTES_MAX (UINT64_C(1) << 30)
/* Of those, what matrix products are asked to do with. */
#define PRODUCT_BYTES_MAX (UINT64_C(32) << 20)

struct error;
struct product; /* product.h: how a shape is multiplied */
struct flash;   /* flash.h */

struct lane {
    cudaStream_t stream;
    cublasLtHandle_t handle;
    float *scratch;
    void *workspace;
    uint64_t workspace_bytes;
    product *products;
    struct flash *flash; /* NULL: no attention yet */
    int status;          /* 0, or the first CUDA error */
    const char *what;    /* that was being done then */
};

/* What matrix products may use of the workspace. */
inline uint64_t lane_product_bytes(const lane *lane)
{
    return lane->workspace_bytes < PRODUCT_BYTES_MAX ? lane->workspace_bytes : PRODUCT_BYTES_MAX;
}

/* The calling thread's. */
lane *lane_here(void);
/* Remember what went wrong first. */
void lane_note(cudaError_t status, const char *what);
void lane_note(cublasStatus_t status, const char *what);
/* In words, with what was being done; the error's code. */
int lane_words(struct error *err, cudaError_t status, const char *what);

#endif
