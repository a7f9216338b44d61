/* speeds.h - how fast workers are, in classes; inside jobs/ only. */
#ifndef COORDINATOR_JOBS_SPEEDS_H
#define COORDINATOR_JOBS_SPEEDS_H

#include "coordinator/membership/devices.h"

/* Of each device the class of its worker's devices of that kind: 0 are the fastest, and those whose
 * speed nobody has told. Those of one worker lie next to each other. The array is the caller's. */
int *speeds_classify(const struct device_view *devices, size_t count);

#endif
