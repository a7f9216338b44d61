/* stream.h - a stream is a CUDA stream, together with the scratch memory that its kernels share,
 * the handles and plans of libraries, and its first error. One thread at a time issues to it. */
#ifndef WORKER_KERNELS_CUDA_STREAM_H
#define WORKER_KERNELS_CUDA_STREAM_H

#include <cstdint>
#include <cublasLt.h>
#include <cuda_runtime.h>

#define SCRATCH_BYTES (UINT64_C(4) << 20) /* of a stream, for partial sums */
/* The workspace that libraries use in turn is 1 / WORKSPACE_SHARE of the device's memory, up to a
 * limit. The larger it is, the fewer parts attention is divided into. */
#define WORKSPACE_SHARE 64
#define WORKSPACE_BYTES_MAX (UINT64_C(1) << 30)
/* The limit of what a matrix product may use of it. */
#define PRODUCT_BYTES_MAX (UINT64_C(32) << 20)

struct error;

/* What a library keeps for a stream: it puts it here when it is first used in it, and it is closed
 * with the stream. Zeroed: nothing. */
struct stream_library {
    void *state;
    void (*close)(void *state);
};

struct device_stream {
    cudaStream_t cuda;
    /* Only in a stream that computes; otherwise NULL and 0. */
    cublasLtHandle_t handle;
    float *scratch; /* SCRATCH_BYTES */
    void *workspace;
    uint64_t workspace_bytes;
    struct stream_library products, attention;
    int status;       /* 0, or the first CUDA error */
    const char *what; /* what was being done then */
};

/* What matrix products may use of the workspace. */
inline uint64_t stream_product_bytes(const device_stream *stream)
{
    return stream->workspace_bytes < PRODUCT_BYTES_MAX ? stream->workspace_bytes
                                                       : PRODUCT_BYTES_MAX;
}

/* The stream that the calling thread has entered; there must be one. */
device_stream *stream_here(void);
/* Remember the status in the calling thread's stream if it is the first error there, and what was
 * being done, a string literal. */
void stream_note(cudaError_t status, const char *what);
void stream_note(cublasStatus_t status, const char *what);
/* Describe a CUDA error that occurred while `what` was being done; returns its negative errno. */
int stream_words(struct error *err, cudaError_t status, const char *what);

#endif
