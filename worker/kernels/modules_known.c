/* modules_known.c - by file alone, for those who name devices and load none. */
#include "worker/kernels/modules_known.h"

#include <stddef.h>

const char *const device_modules[] = {"cuda", NULL};
