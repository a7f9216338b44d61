/* process.h - what this process takes of its machine, under the names that every exporter of
 * Prometheus has for it: process_cpu_seconds_total, process_resident_memory_bytes... */
#ifndef COORDINATOR_METRICS_PROCESS_H
#define COORDINATOR_METRICS_PROCESS_H

#include "coordinator/metrics/exposition.h"

/* started_s: seconds of the calendar since 1970. What the system does not tell is left out. */
void metrics_add_process(struct exposition *exposition, double started_s);

#endif
