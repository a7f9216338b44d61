/* modules_known.c - in a file of its own, for programs that name devices but load none. */
#include "worker/kernels/modules_known.h"

#include <stddef.h>

const char *const device_modules[] = {"cuda", NULL};
