/* runtime.h - what the files of the emulated runtime share. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H
#define TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <mutex>

/* One thread of the host at a time is in the runtime; kernels run under it, once each. */
extern std::recursive_mutex emulated_lock;

/* All that was issued to the stream, or to any, is done. Under the lock, which is taken once: it is
 * left while others are waited for. */
void emulated_finish(cudaStream_t stream);
void emulated_finish_all();

#endif
