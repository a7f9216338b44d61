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

const struct kernel *device_kernel(const struct device *device, const struct operation *operation,
                                   enum element element)
{
    const char *name = operation->kernel ? operation->kernel : operation->name;
    const struct kernel *const *kernels = element == ELEMENT_F32 ? device->kernels : device->narrow;
    for (int i = 0; kernels[i]; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}
