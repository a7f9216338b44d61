/* modules_known.h - the names of device modules, whether or not this machine has them. */
#ifndef WORKER_KERNELS_MODULES_KNOWN_H
#define WORKER_KERNELS_MODULES_KNOWN_H

/* Modules in which a machine's devices may be found; ends with NULL. */
extern const char *const device_modules[];

#endif
