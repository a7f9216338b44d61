/* errors.h - CUDA errors as a negative errno for the program, and as words for the user that say
 * what to do about them. Works with the runtime's error numbers, and needs neither a device nor the
 * toolkit. */
#ifndef WORKER_KERNELS_CUDA_ERRORS_H
#define WORKER_KERNELS_CUDA_ERRORS_H

#include "common/base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Describe a cudaError_t other than 0, of which the runtime gives name and text, and which occurred
 * while `what` was being done. -ENOMEM; -ENODEV: there is no usable device; -EIO: any other error,
 * after most of which this process can no longer use the device. */
int errors_set(struct error *err, int status, const char *name, const char *text, const char *what);
/* -ENOMEM, with the sizes: asked for, free, and the device's. */
int errors_set_memory(struct error *err, uint64_t bytes, uint64_t free_bytes, uint64_t whole_bytes);

#ifdef __cplusplus
}
#endif

#endif
