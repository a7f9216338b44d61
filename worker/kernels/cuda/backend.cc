/* backend.cc - loads cuDNN on first use, and creates handles of it. */
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/cuda/descriptor.h"

#include <cerrno>
#include <dlfcn.h>
#include <mutex>

#ifndef CUDNN_LIBRARY
#define CUDNN_LIBRARY "libcudnn.so.9"
#endif

struct backend_functions backend_library;

namespace
{

template <typename Function> bool find(void *from, const char *name, Function *out)
{
    *out = reinterpret_cast<Function>(dlsym(from, name));
    return *out != nullptr;
}

bool find_all(void *from)
{
    return find(from, "cudnnCreate", &backend_library.create) &&
           find(from, "cudnnDestroy", &backend_library.destroy) &&
           find(from, "cudnnSetStream", &backend_library.set_stream) &&
           find(from, "cudnnBackendCreateDescriptor", &backend_library.make) &&
           find(from, "cudnnBackendDestroyDescriptor", &backend_library.unmake) &&
           find(from, "cudnnBackendSetAttribute", &backend_library.set) &&
           find(from, "cudnnBackendGetAttribute", &backend_library.get) &&
           find(from, "cudnnBackendFinalize", &backend_library.finalize) &&
           find(from, "cudnnBackendExecute", &backend_library.execute);
}

} // namespace

int backend_load(struct error *err)
{
    static std::mutex lock;
    static bool loaded;
    std::lock_guard<std::mutex> guard(lock);
    if (loaded)
        return 0;
    void *handle = dlopen(CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return error_set(err, -ENODEV, "cuDNN 9 is not here: %s", dlerror());
    loaded = find_all(handle);
    return loaded ? 0 : error_set(err, -ENODEV, "cuDNN lacks a function: %s", dlerror());
}

int backend_open(cudnnHandle_t *out, cudaStream_t stream, struct error *err)
{
    int rc = backend_load(err);
    if (rc < 0)
        return rc;
    cudnnStatus_t status = backend_library.create(out);
    if (status == CUDNN_STATUS_SUCCESS)
        status = backend_library.set_stream(*out, stream);
    return status == CUDNN_STATUS_SUCCESS
               ? 0
               : error_set(err, -EIO, "cuDNN cannot be initialised: status %d", (int)status);
}

void backend_close(cudnnHandle_t handle)
{
    if (handle)
        backend_library.destroy(handle);
}
