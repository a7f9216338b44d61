/* modules_known.h - which modules of devices there are, whether or not this machine has them. */
#ifndef WORKER_KERNELS_MODULES_KNOWN_H
#define WORKER_KERNELS_MODULES_KNOWN_H

/* The modules that a machine's devices may be in; ends with NULL. */
extern const char *const device_modules[];

#endif
