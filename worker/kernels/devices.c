/* devices.c - the table of devices that are linked in, and modules by dlopen, with its error
 * messages.
 */
#include "worker/kernels/devices.h"

#include "common/base/memory.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULES_BUILT "worker/kernels" /* in a build tree, beside the folder of its programs */

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

/* The module that a build tree has beside the program that is running, which was not installed, to
 * be freed; NULL: it is installed. */
static char *module_built(const char *name)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0)
        return NULL;
    own[length] = '\0';
    char *slash = strrchr(own, '/');
    *slash = '\0';
    char *path = xasprintf("%s/../" MODULES_BUILT "/gimbal-%s.so", own, name);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *module_path(const char *name)
{
    const char *folder = getenv("GIMBAL_MODULES");
    char *built = folder ? NULL : module_built(name);
    return built ? built : xasprintf("%s/gimbal-%s.so", folder ? folder : MODULES_FOLDER, name);
}

/* Whether the module is known, even if it is not installed, or exists in the folder. */
static bool is_module(const char *name)
{
    for (int i = 0; device_modules[i]; i++)
        if (strcmp(device_modules[i], name) == 0)
            return true;
    char *path = module_path(name);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

/* No device has this name: say which there are. */
static int refuse_device(const char *name, struct error *err)
{
    char *known = NULL;
    size_t size;
    FILE *out = open_memstream(&known, &size);
    for (int i = 0; devices[i]; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", devices[i]->name);
    for (int i = 0; device_modules[i]; i++)
        if (!device_find(device_modules[i]))
            fprintf(out, ", %s", device_modules[i]);
    fclose(out);
    error_set(err, -ENODEV, "there is no device '%s'; there are: %s", name, known);
    free(known);
    return -ENODEV;
}

static int module_open(const char *path, const char *symbol, const void **out, struct error *err)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return error_set(err, -ENODEV,
                         "its module cannot be loaded: %s; GIMBAL_MODULES may name the folder that "
                         "has it",
                         dlerror());
    *out = dlsym(module, symbol);
    if (*out)
        return 0;
    dlclose(module);
    return error_set(err, -ENODEV, "'%s' has no '%s': it is of another version", path, symbol);
}

int module_load(const char *name, const char *symbol, const void **out, struct error *err)
{
    char *path = module_path(name);
    int rc = module_open(path, symbol, out, err);
    free(path);
    return rc;
}

int device_load(const char *name, const struct device **out, struct error *err)
{
    const void *found = NULL;
    *out = device_find(name);
    if (*out)
        return 0;
    if (strchr(name, '/'))
        return error_set(err, -ENODEV, "'%s' is no name of a device", name);
    if (!is_module(name))
        return refuse_device(name, err);
    char *symbol = xasprintf("device_%s", name);
    int rc = module_load(name, symbol, &found, err);
    *out = found;
    free(symbol);
    return rc < 0 ? error_prefix(err, rc, "device '%s'", name) : 0;
}

int device_open(const char *text, const struct device **out, struct error *err)
{
    const char *id = strchr(text, ':');
    char *name = xasprintf("%.*s", id ? (int)(id - text) : (int)strlen(text), text);
    int rc = device_load(name, out, err);
    free(name);
    if (rc < 0)
        return rc;
    assert(*out);
    if (id && !(*out)->choose)
        return error_set(err, -EINVAL, "device '%s': there is one '%s' on a machine; write '%s'",
                         text, (*out)->name, (*out)->name);
    if (id)
        (*out)->choose(id + 1);
    rc = (*out)->probe(err);
    return rc < 0 ? error_prefix(err, rc, "device '%s'", text) : 0;
}
