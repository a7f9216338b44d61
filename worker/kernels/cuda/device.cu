/* device.cu - NVIDIA GPUs: our own kernels in f32 and bf16, matrix products by cuBLASLt, attention
 * by cuDNN where it is installed. Here are the row, and how the machine's devices are listed and
 * chosen.
 */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/errors.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static int list_fail(struct error *err, cudaError_t status)
{
    return errors_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status),
                      "listing the devices");
}

/* As nvidia-smi writes it. */
static void print_uuid(const cudaUUID_t &uuid, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "GPU");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(out + used, size - used, "%s%02x", dash ? "-" : "",
                                 (unsigned char)uuid.bytes[i]);
    }
}

static int cuda_list(struct device_info *out, int most, struct error *err)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count == 0)
        status = cudaErrorNoDevice;
    if (status != cudaSuccess)
        return list_fail(err, status);
    for (int i = 0; i < count && i < most; i++) {
        cudaDeviceProp device;
        status = cudaGetDeviceProperties(&device, i);
        if (status != cudaSuccess)
            return list_fail(err, status);
        print_uuid(device.uuid, out[i].id, sizeof out[i].id);
        snprintf(out[i].name, sizeof out[i].name, "%.*s", (int)sizeof out[i].name - 1, device.name);
        snprintf(out[i].place, sizeof out[i].place, "%04x:%02x:%02x.0",
                 (unsigned)device.pciDomainID, (unsigned)device.pciBusID,
                 (unsigned)device.pciDeviceID);
    }
    return count < most ? count : most;
}

/* The runtime reads these variables at its first call, for all threads. Every stream is a stream,
 * and every channel to another rank has one; with the default of 8 hardware queues, streams would
 * share a queue, and a message that waits for its receiver would hold up unrelated work. */
static void cuda_choose(const char *id)
{
    setenv("CUDA_VISIBLE_DEVICES", id, 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    /* With lazy loading, a kernel's first launch waits until the device is idle, and other threads
     * wait for that launch; but the device may be waiting for what one of them is about to send. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

static int cuda_probe(struct error *err)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count == 0)
        status = cudaErrorNoDevice;
    if (status == cudaSuccess)
        status = cudaFree(NULL); /* creates the context: tests driver, device and our code */
    if (status == cudaSuccess)
        return 0;
    return errors_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status),
                      "looking for a device");
}

static const struct kernel *const cuda_kernels[] = {
    &cuda_add,  &cuda_attention, &cuda_embed,   &cuda_gelu,   &cuda_linear, &cuda_loss,
    &cuda_norm, &cuda_position,  &cuda_rmsnorm, &cuda_rotary, &cuda_swiglu, NULL,
};

static const struct kernel_pair cuda_pairs[] = {
    {&cuda_add, &cuda_norm, cuda_add_norm},
    {&cuda_add, &cuda_rmsnorm, cuda_add_rmsnorm},
    {},
};

const struct device device_cuda = {
    .name = "cuda",
    .list = cuda_list,
    .choose = cuda_choose,
    .probe = cuda_probe,
    .collectives = "nccl",
    .accelerator = &cuda_accelerator,
    .kernels = cuda_kernels,
    .pairs = cuda_pairs,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .add = cuda_sum,
    .square_sum = cuda_square_sum,
    .square_sum_all = cuda_square_sum_all,
    .copy_all = cuda_copy_all,
    .update = cuda_update,
    .update_all = cuda_update_all,
};
