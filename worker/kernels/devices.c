/* devices.c - the family of devices; the fastest that a machine has is used by its name. */
#include "worker/kernels/kernels.h"

#include <string.h>

const struct device *const devices[] = {
    &device_plain, /* plain C: slow and readable, the yardstick of all others */
    &device_cpu,   /* vectorised loops, matrix products of oneDNN and OpenBLAS */
#ifdef HAVE_CUDA
    &device_cuda, /* an NVIDIA device */
#endif
    NULL,
};

const struct device *device_find(const char *name)
{
    for (int i = 0; devices[i]; i++)
        if (strcmp(devices[i]->name, name) == 0)
            return devices[i];
    return NULL;
}

const struct kernel *device_kernel(const struct device *device, const struct operation *operation)
{
    const char *name = operation->kernel ? operation->kernel : operation->name;
    for (int i = 0; device->kernels[i]; i++)
        if (strcmp(device->kernels[i]->name, name) == 0)
            return device->kernels[i];
    return NULL;
}
