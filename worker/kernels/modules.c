/* modules.c - dlopen, and what it says. */
#include "worker/kernels/modules.h"

#include "common/base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int load(const char *path, const char *name, const struct device **out, struct error *err)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return error_set(err, -ENODEV, "device '%s' cannot be loaded: %s", name, dlerror());
    char *symbol = xasprintf("device_%s", name);
    *out = dlsym(module, symbol);
    free(symbol);
    if (*out)
        return 0;
    dlclose(module);
    return error_set(err, -ENODEV, "'%s' is no module of device '%s'", path, name);
}

int device_load(const char *name, const struct device **out, struct error *err)
{
    const char *folder = getenv("GIMBAL_MODULES");
    *out = device_find(name);
    if (*out)
        return 0;
    if (strchr(name, '/'))
        return error_set(err, -ENODEV, "'%s' is no name of a device", name);
    char *path = xasprintf("%s/gimbal-%s.so", folder ? folder : MODULES_FOLDER, name);
    int rc = load(path, name, out, err);
    free(path);
    return rc;
}
