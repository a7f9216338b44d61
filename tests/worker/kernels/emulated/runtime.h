/* runtime.h - what the files of the emulated CUDA runtime share. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H
#define TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <condition_variable>
#include <mutex>

/* Held by the one host thread that is in the runtime; kernels run with it held. */
extern std::recursive_mutex emulated_lock;

/* Whether the stream captures work of the calling thread. */
bool emulated_captures(cudaStream_t stream);
/* If so, record the work; returns whether it did. */
bool emulated_keep(cudaStream_t stream, const std::function<void()> &work);
/* Called for what is not allowed during a capture: if the thread captures, make the capture fail
 * and return true. */
bool emulated_spoils();

/* Map memory for a reservation, filled with NaN; nullptr: there is no room. With the lock held, as
 * all of the following. */
void *emulated_map(size_t bytes);
void emulated_unmap(void *memory);
/* Device memory is accessible only between these two, while work of a stream is done. */
void emulated_begin_work();
void emulated_end_work();
/* Release the lock and wait; device memory is not accessible meanwhile. */
void emulated_wait(std::condition_variable_any &changed);

/* Do all work that was issued to the stream, or to any stream. The lock must be held only once by
 * this thread, because it is released while waiting for others. */
void emulated_finish(cudaStream_t stream);
void emulated_finish_all();

#endif
