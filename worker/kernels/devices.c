/* devices.c - the table of devices that are linked in. */
#include "worker/kernels/kernels.h"

#include <string.h>

const struct device *const devices[] = {
    &device_plain, /* plain C: slow and readable, to compare all others with */
    &device_cpu,   /* vectorised loops; matrix products of our own, oneDNN or OpenBLAS */
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
