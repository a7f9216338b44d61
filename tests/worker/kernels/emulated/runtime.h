/* runtime.h - what the files of the emulated runtime share. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H
#define TESTS_WORKER_KERNELS_EMULATED_RUNTIME_H

#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <condition_variable>
#include <mutex>

/* One thread of the host at a time is in the runtime; kernels run under it, once each. */
extern std::recursive_mutex emulated_lock;

/* Does the stream capture what the calling thread gives to it? */
bool emulated_captures(cudaStream_t stream);
/* If so this is kept. */
bool emulated_keep(cudaStream_t stream, const std::function<void()> &work);
/* The thread does what it may not while a stream captures: true if one does, and is spoiled. */
bool emulated_spoils();

/* A reservation's mapping, filled with NaN; nullptr: there is no room. Under the lock. */
void *emulated_map(size_t bytes);
void emulated_unmap(void *memory);
/* Memory of the device is there for the host between these two only: for what is done in a stream.
 * Under the lock. */
void emulated_begin_work();
void emulated_end_work();
/* Lets others go on, for whom it is not there. */
void emulated_wait(std::condition_variable_any &changed);

/* All that was issued to the stream, or to any, is done. Under the lock, which is taken once: it is
 * left while others are waited for. */
void emulated_finish(cudaStream_t stream);
void emulated_finish_all();

#endif
