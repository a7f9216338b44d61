/* properties.cc - the emulated devices, and the names and texts of errors. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace
{

thread_local int current;

/* Device i has the UUID GPU-0000..i. */
int last_digit(const std::string &uuid)
{
    return uuid.empty() ? -1 : uuid.back() - '0';
}

/* Those that this process sees. */
std::vector<int> visible()
{
    const char *all = getenv("EMULATED_DEVICES"), *names = getenv("CUDA_VISIBLE_DEVICES");
    int count = all ? atoi(all) : 1;
    std::vector<int> seen;
    if (!names) {
        for (int i = 0; i < count; i++)
            seen.push_back(i);
        return seen;
    }
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');) {
        int index = last_digit(name);
        if (index < 0 || index >= count)
            break;
        seen.push_back(index);
    }
    return seen;
}

} // namespace

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)visible().size();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    std::vector<int> seen = visible();
    if (device < 0 || device >= (int)seen.size())
        return cudaErrorInvalidDevice;
    *out = cudaDeviceProp{};
    snprintf(out->name, sizeof out->name, "emulated device");
    out->uuid.bytes[15] = (char)seen[(size_t)device];
    out->pciBusID = 16 + seen[(size_t)device];
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= (int)visible().size())
        return cudaErrorInvalidDevice;
    current = device;
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
    return status == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : status == cudaErrorInvalidDevice  ? "cudaErrorInvalidDevice"
                                               : "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t)
{
    return "an error of the emulated device";
}
