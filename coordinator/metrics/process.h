/* process.h - resource usage of this process, under the standard names of Prometheus exporters:
 * process_cpu_seconds_total, process_resident_memory_bytes and others. */
#ifndef COORDINATOR_METRICS_PROCESS_H
#define COORDINATOR_METRICS_PROCESS_H

#include "coordinator/metrics/exposition.h"

/* started_s: seconds since 1970. Figures that the system does not provide are left out. */
void metrics_add_process(struct exposition *exposition, double started_s);

#endif
