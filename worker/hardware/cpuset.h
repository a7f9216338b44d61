/* cpuset.h - which cores a rank runs on. */
#ifndef WORKER_HARDWARE_CPUSET_H
#define WORKER_HARDWARE_CPUSET_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

#include <sched.h>

#define CPUSETS_MAX HARDWARE_PIECES_MAX

/* "0-3,8" -> a set; -EINVAL with the text. */
int cpuset_parse(const char *text, size_t size, cpu_set_t *out, struct error *err);
/* "0-1;2-3" -> sets; returns how many, or -EINVAL. */
int cpuset_parse_list(const char *text, cpu_set_t out[CPUSETS_MAX], struct error *err);
/* The process's cores in `count` sets of neighbours; fewer cores than sets: one core each, in
 * turn. */
void cpuset_share(int count, cpu_set_t out[CPUSETS_MAX]);
/* Bind the calling thread, and say how many threads of its own it may use. */
int cpuset_bind(const cpu_set_t *set, int *threads, struct error *err);

#endif
