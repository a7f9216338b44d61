/* words.h - what a CUDA error means to a person, and what would be right; to the program, an
 * errno. It knows the runtime's numbers and needs neither device nor toolkit. */
#ifndef WORKER_KERNELS_CUDA_WORDS_H
#define WORKER_KERNELS_CUDA_WORDS_H

#include "common/base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* status: a cudaError_t other than 0, with the runtime's name and text for it. -ENOMEM, -ENODEV:
 * there is no usable device, -EIO: there was one, and this process can use it no more. */
int words_set(struct error *err, int status, const char *name, const char *text, const char *what);
/* -ENOMEM: so much was asked for. */
int words_set_memory(struct error *err, uint64_t bytes, uint64_t free_bytes, uint64_t whole_bytes);

#ifdef __cplusplus
}
#endif

#endif
