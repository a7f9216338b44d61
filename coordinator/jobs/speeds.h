/* speeds.h - how fast workers are, in classes. Private to jobs/. */
#ifndef COORDINATOR_JOBS_SPEEDS_H
#define COORDINATOR_JOBS_SPEEDS_H

#include "coordinator/membership/devices.h"

/* The speed class of every device, which is that of its worker's devices of the same kind: 0 for
 * the fastest and for those of unknown speed. Devices of a worker must be adjacent. The caller
 * frees the array. */
int *speeds_classify(const struct device_view *devices, size_t count);

#endif
