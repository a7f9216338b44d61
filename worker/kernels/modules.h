/* modules.h - devices whose libraries most machines lack: each is a module, loaded when it is asked
 * for, so that nobody else pays for them. */
#ifndef WORKER_KERNELS_MODULES_H
#define WORKER_KERNELS_MODULES_H

#include "worker/kernels/kernels.h"

/* A device of the table, or that of the module gimbal-NAME.so in the folder that GIMBAL_MODULES
 * names, else where modules are installed. -ENODEV in words: there is none, and which there are, or
 * a library that it needs is missing. A module stays loaded. */
int device_load(const char *name, const struct device **out, struct error *err);
/* The device that a text names, ready for use: "cpu", "cuda", or "cuda:GPU-6f0c..." for one of
 * several; before there are threads. -ENODEV, -EINVAL in words. */
int device_open(const char *text, const struct device **out, struct error *err);
/* Any symbol of the module gimbal-NAME.so: a row of another family. */
int module_load(const char *name, const char *symbol, const void **out, struct error *err);

#endif
