/* properties.cc - the devices that there are, and words for what went wrong. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>

/* Device i has the UUID GPU-0000..i. */
static int last_digit(const char *uuid)
{
    size_t length = strlen(uuid);
    return length > 0 ? uuid[length - 1] - '0' : -1;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *all = getenv("EMULATED_DEVICES"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    *count = all ? atoi(all) : 1;
    if (visible)
        *count = last_digit(visible) >= 0 && last_digit(visible) < *count;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int index = visible ? last_digit(visible) : device;
    *out = cudaDeviceProp{};
    snprintf(out->name, sizeof out->name, "emulated device");
    out->uuid.bytes[15] = (char)index;
    out->pciBusID = 16 + index;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t status)
{
    return status == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t)
{
    return "an error of the emulated device";
}
