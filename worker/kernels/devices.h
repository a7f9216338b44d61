/* devices.h - finds devices, and loads those whose libraries most machines lack. Each of these is a
 * module (a shared object) that is loaded on request, so that no other process pays for it. */
#ifndef WORKER_KERNELS_DEVICES_H
#define WORKER_KERNELS_DEVICES_H

#include "worker/kernels/kernels.h"

#include <stddef.h>

/* Modules in which a machine's devices may be found, whether or not this one has them; ends with
 * NULL. A constant here, for programs that name devices but load none. */
static const char *const device_modules[] = {"cuda", NULL};

/* Find a device in the table, or in the module gimbal-NAME.so, which is looked for in the folder
 * GIMBAL_MODULES, or else in the program's own build tree, or where modules are installed. A module
 * stays loaded. -ENODEV, with the known names: there is no such device; or a library that its
 * module needs is missing. */
int device_load(const char *name, const struct device **out, struct error *err);
/* Load the device that a text names, and make it ready for use: "cpu", "cuda", or
 * "cuda:GPU-6f0c..." to choose one of several. To be called before there are threads. -ENODEV,
 * -EINVAL. */
int device_open(const char *text, const struct device **out, struct error *err);
/* Load any symbol of the module gimbal-NAME.so, such as a row of another family. -ENODEV. */
int module_load(const char *name, const char *symbol, const void **out, struct error *err);

#endif
